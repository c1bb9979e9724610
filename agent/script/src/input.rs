//! Whether what a person has typed so far is a whole program, for those who read it line by line.

use crate::lexer::{self, Tok};

/// What follows the lines so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// They are whole, as far as can be told without the rest: run them.
    Whole,
    /// A bracket, a string or the line itself goes on: read more.
    Open,
    /// They end in a block, which an empty line ends, or one that does not belong to it: see [`continues_block`].
    Block,
}

/// Tells what follows the lines so far. Lines that can never become a program are whole: running them says why.
pub fn input(source: &str) -> Input {
    let goes_on = source.trim_end_matches(['\n', '\r']).ends_with('\\');
    if goes_on || lexer::is_open(source) {
        return Input::Open;
    }
    let Ok(tokens) = lexer::tokens(source) else { return Input::Whole };
    let mut line_start = true;
    let mut block = false;
    for token in &tokens {
        if line_start && matches!(token.tok, Tok::Sign("if" | "for" | "while" | "try" | "def")) {
            block = true;
        }
        line_start = matches!(token.tok, Tok::Newline | Tok::Indent | Tok::Dedent);
    }
    if block { Input::Block } else { Input::Whole }
}

/// Whether a line may belong to the block that the lines before it end in.
pub fn continues_block(line: &str) -> bool {
    let word: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
    line.trim().is_empty()
        || line.starts_with([' ', '\t', '#', ')', ']', '}'])
        || matches!(word.as_str(), "elif" | "else" | "except" | "finally")
}

#[cfg(test)]
mod tests {
    use super::{Input, continues_block, input};

    #[test]
    fn lines_so_far() {
        for (source, expected) in [
            ("x = 1\n", Input::Whole),
            ("x = (1,\n", Input::Open),
            ("f(\"\"\"a\nb\n", Input::Open),
            ("x = 'a\n", Input::Whole),
            ("x = 1 + \\\n", Input::Open),
            ("f'{x\n", Input::Whole),
            ("if x:\n", Input::Block),
            ("if x: y\n", Input::Block),
            ("for a in b:\n    c\n", Input::Block),
            ("x = [a for a in b if a]\n", Input::Whole),
            ("x)\n", Input::Whole),
            ("# note\n", Input::Whole),
            ("", Input::Whole),
        ] {
            assert_eq!(input(source), expected, "{source}");
        }
    }

    #[test]
    fn lines_after_a_block() {
        for line in ["    x", "\tx", "", "else:", "except ValueError as e:", "# note"] {
            assert!(continues_block(line), "{line}");
        }
        for line in ["x = 1", "elsewhere = 2", "if x:"] {
            assert!(!continues_block(line), "{line}");
        }
    }
}
