//! Reading a stored [`Schema`], to a fixed depth: how deep bytes nest decides nothing about our stack. Each level is a type of
//! its own, and the innermost has no value.

use super::{JsonText, Property, Schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// As [`Schema`], with what stands inside it left open.
#[derive(Deserialize)]
enum Level<T> {
    Any,
    Null,
    Bool,
    Integer { least: Option<i64>, most: Option<i64> },
    Number,
    String,
    Enum(Vec<JsonText>),
    Array(Box<T>),
    Object { properties: Vec<LevelProperty<T>>, open: bool },
    Union(Vec<T>),
}

#[derive(Deserialize)]
struct LevelProperty<T> {
    name: String,
    schema: T,
    required: bool,
}

/// What would be too deep; [`super::DEEPEST`] keeps what is read from JSON above it.
struct TooDeep;

type Four<T> = Level<Level<Level<Level<T>>>>;

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        Four::<Four<Four<TooDeep>>>::deserialize(deserializer).map(Schema::from)
    }
}

impl<'de> Deserialize<'de> for TooDeep {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<TooDeep, D::Error> {
        Err(D::Error::custom("schema is nested too deeply"))
    }
}

impl From<TooDeep> for Schema {
    fn from(_: TooDeep) -> Schema {
        Schema::Any
    }
}

impl<T: Into<Schema>> From<Level<T>> for Schema {
    fn from(level: Level<T>) -> Schema {
        match level {
            Level::Any => Schema::Any,
            Level::Null => Schema::Null,
            Level::Bool => Schema::Bool,
            Level::Integer { least, most } => Schema::Integer { least, most },
            Level::Number => Schema::Number,
            Level::String => Schema::String,
            Level::Enum(choices) => Schema::Enum(choices),
            Level::Array(items) => Schema::Array(Box::new((*items).into())),
            Level::Object { properties, open } => {
                let property =
                    |p: LevelProperty<T>| Property { name: p.name, schema: p.schema.into(), required: p.required };
                Schema::Object { properties: properties.into_iter().map(property).collect(), open }
            }
            Level::Union(parts) => Schema::Union(parts.into_iter().map(T::into).collect()),
        }
    }
}
