//! Values: small ones in place, the others by id in the heap.

use serde::{Deserialize, Serialize};

/// The place of an object in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Id(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Value {
    /// What a name holds before it is assigned; never seen by a program.
    Unbound,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Object(Id),
    /// A string that only the variable which holds this refers to, with its length in bytes: `s += x` may grow it in
    /// place. Reading the variable gives an `Object`, and makes it one.
    Growing(Id, u32),
    Builtin(Builtin),
    Class(Class),
    /// The type of values that no built-in makes, such as functions.
    Type(TypeName),
    Json,
    /// A server, by its place in the VM's list.
    Server(u32),
    /// A tool or a move, by its place in the VM's list.
    Tool(u32),
}

macro_rules! names {
    ($(#[$doc:meta])* $enum:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub(crate) enum $enum { $($variant),* }

        impl $enum {
            pub(crate) const ALL: &'static [$enum] = &[$($enum::$variant),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $($enum::$variant => $name),* }
            }

            pub(crate) fn named(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|x| x.name() == name)
            }
        }
    };
}

names! {
    /// The built-in functions.
    Builtin {
        Abs = "abs", All = "all", Any = "any", Bin = "bin", Bool = "bool", Callable = "callable", Chr = "chr",
        Dict = "dict", Divmod = "divmod", Enumerate = "enumerate", Filter = "filter", Float = "float",
        Format = "format", Gather = "gather", GetAttr = "getattr", HasAttr = "hasattr", Hex = "hex", Int = "int",
        IsInstance = "isinstance", Iter = "iter", Len = "len", List = "list", Map = "map", Max = "max", Min = "min",
        Next = "next", Oct = "oct", Ord = "ord", Pow = "pow", Print = "print", Range = "range", Repr = "repr",
        Reversed = "reversed", Round = "round", Set = "set", Sorted = "sorted", Str = "str", Sum = "sum",
        Tuple = "tuple", Type = "type", Zip = "zip",
    }
}

names! {
    /// The types that are no built-in function.
    TypeName {
        NoneType = "NoneType", Function = "function", Builtin = "builtin_function_or_method", Type = "type",
        Server = "server", Tool = "tool", Module = "module", Iterator = "iterator", Pending = "call",
    }
}

names! {
    /// The exceptions, general ones before special ones.
    Class {
        BaseException = "BaseException", Exception = "Exception", ArithmeticError = "ArithmeticError",
        ZeroDivisionError = "ZeroDivisionError", OverflowError = "OverflowError", LookupError = "LookupError",
        IndexError = "IndexError", KeyError = "KeyError", NameError = "NameError",
        UnboundLocalError = "UnboundLocalError", TypeError = "TypeError", ValueError = "ValueError",
        AttributeError = "AttributeError", RuntimeError = "RuntimeError", RecursionError = "RecursionError",
        NotImplementedError = "NotImplementedError", AssertionError = "AssertionError",
        StopIteration = "StopIteration", OsError = "OSError", FileNotFoundError = "FileNotFoundError",
        PermissionError = "PermissionError", TimeoutError = "TimeoutError", ConnectionError = "ConnectionError",
        ToolError = "ToolError",
    }
}

impl Class {
    fn parent(self) -> Option<Class> {
        Some(match self {
            Class::BaseException => return None,
            Class::Exception => Class::BaseException,
            Class::ZeroDivisionError | Class::OverflowError => Class::ArithmeticError,
            Class::IndexError | Class::KeyError => Class::LookupError,
            Class::UnboundLocalError => Class::NameError,
            Class::RecursionError | Class::NotImplementedError => Class::RuntimeError,
            Class::FileNotFoundError | Class::PermissionError | Class::TimeoutError | Class::ConnectionError => {
                Class::OsError
            }
            _ => Class::Exception,
        })
    }

    /// Whether `except other` catches this.
    pub(crate) fn is(self, other: Class) -> bool {
        let mut class = Some(self);
        while let Some(current) = class {
            if current == other {
                return true;
            }
            class = current.parent();
        }
        false
    }
}
