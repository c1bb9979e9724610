//! The canonical form: what it looks like, and that it is the same program with the same comments.

use super::words::comment_text;
use super::{canonical, lexer};
use crate::lexer::Tok;
use crate::limits::Limits;
use crate::parser;
use expect_test::{Expect, expect};
use proptest::prelude::*;

const CORPUS: &str = include_str!("../../tests/conformance.src");

fn form(source: &str) -> String {
    canonical(source, &Limits::default()).unwrap_or_else(|error| panic!("{}\n{source}", error.report(source)))
}

/// The tree without its places.
fn tree(source: &str) -> String {
    let text = format!("{:?}", parser::program(source, 100).unwrap());
    let mut parts = text.split("Pos { line: ");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once('}').unwrap().1)
}

fn comments(source: &str) -> Vec<String> {
    let comments = lexer::tokens_and_comments(source).unwrap().1;
    let texts = comments.iter().map(|comment| comment_text(&comment.text));
    let mut texts: Vec<String> =
        texts.flat_map(|c| c.split("  #").map(|c| c.trim_matches(['#', ' ']).to_owned()).collect::<Vec<_>>()).collect();
    texts.sort();
    texts
}

fn check_property(source: &str) {
    let once = form(source);
    assert_eq!(tree(source), tree(&once), "{source}\n--- became\n{once}");
    assert_eq!(comments(source), comments(&once), "{source}\n--- became\n{once}");
    assert_eq!(once, form(&once), "not a form of itself:\n{source}");
}

/// The source with other white space: what stands between two words of a line is drawn from `seeds`.
fn mangled(source: &str, seeds: &[u8], with_comments: bool) -> String {
    let (tokens, _) = lexer::tokens_and_comments(source).unwrap();
    let chars: Vec<char> = source.chars().collect();
    let starts: Vec<usize> =
        std::iter::once(0).chain(chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at + 1)).collect();
    let (mut out, mut level, mut brackets, mut fresh) = (String::new(), 0usize, 0u32, true);
    let mut seeds = seeds.iter().cycle();
    for token in &tokens {
        let seed = *seeds.next().unwrap();
        match &token.tok {
            Tok::Indent => level += 1,
            Tok::Dedent => level -= 1,
            Tok::End => {}
            Tok::Newline => {
                out.push_str(match seed % 8 {
                    0 => "   \n",
                    1 => "\n\n\n",
                    2 if with_comments => "#end of line\n",
                    3 if with_comments => "\n      # deep\n",
                    4 if with_comments => "\n\n#  left\n",
                    _ => "\n",
                });
                fresh = true;
            }
            tok => {
                if fresh {
                    out.push_str(&" ".repeat(3 * level));
                } else {
                    out.push_str(match seed % 8 {
                        0 => "   ",
                        1 => " \\\n  ",
                        2 if brackets > 0 => "\n",
                        3 if brackets > 0 && with_comments => " # beside\n",
                        4 if brackets > 0 && with_comments => "\n# alone\n  # twice\n",
                        _ => " ",
                    });
                }
                fresh = false;
                match tok {
                    Tok::Sign("(" | "[" | "{") => brackets += 1,
                    Tok::Sign(")" | "]" | "}") => brackets -= 1,
                    _ => {}
                }
                let start = starts[token.pos.line as usize - 1] + token.pos.column as usize - 1;
                out.extend(&chars[start..token.end]);
            }
        }
    }
    out
}

#[test]
fn the_corpus_keeps_its_meaning_and_comments() {
    for source in CORPUS.split("---\n") {
        check_property(source);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn other_white_space_gives_the_same_form(at in 0usize..1_000, seeds in prop::collection::vec(any::<u8>(), 1..200)) {
        let programs: Vec<&str> = CORPUS.split("---\n").collect();
        let source = programs[at % programs.len()];
        let source = if comments(source).is_empty() { source.to_owned() } else { return Ok(()) };
        let (form, other) = (form(&source), form(&mangled(&source, &seeds, false)));
        prop_assert_eq!(form.replace("\n\n", "\n"), other.replace("\n\n", "\n"));
        check_property(&mangled(&source, &seeds, true));
    }
}

fn check(source: &str, expected: Expect) {
    let form = form(source);
    expected.assert_eq(&form);
    check_property(source);
}

#[test]
fn spaces_quotes_and_lines() {
    check(
        "x=1;y  =  [ 1,2 , 3, ]\nif x>0 : print( 'yes',f'{x}',sep = '' ) ;y.append(4)\nelse:\n  y=-x**-2\nfor k,v in {'a':1}.items():  # pairs\n\tprint( k,v )\n\n\n\ndef f(a,b:int=2,c = 3,*d,**e)->int: return a if b else (a,)\nz = y [1:-1], y[ :: 2], not x, lambda q,r=1:q\nt = 'it\"s', 'don\\'t', u'u', R'\\d', '''long'''\n",
        expect![[r#"
            x = 1
            y = [1, 2, 3]
            if x > 0:
                print("yes", f"{x}", sep="")
                y.append(4)
            else:
                y = -x ** -2
            for k, v in {"a": 1}.items():  # pairs
                print(k, v)

            def f(a, b: int = 2, c=3, *d, **e) -> int:
                return a if b else (a,)
            z = y[1:-1], y[::2], not x, lambda q, r=1: q
            t = 'it"s', 'don\'t', "u", r'\d', '''long'''
        "#]],
    );
}

#[test]
fn long_lines_break_in_their_brackets() {
    check(
        "report = [{'name': f.name, 'mb': round(f.size / 1000000, 1), 'owner': f.owner} for f in fs.list(path='.', recursive=True) if f.size > 1000000 and not f.is_dir]\nweather.forecast(city='Oslo', days=2, unit='c', note='a long text that goes on and on until it is too long')\nok = (first_condition_of_many(1) and second_condition_of_many(2) and third_condition_of_many(3) and fourth(4))\nx = a.b(1)[2].c(3, key=lambda a, b: a + b + 100000000000000002, other=300000000000000004)\n",
        expect![[r#"
            report = [
                {"name": f.name, "mb": round(f.size / 1000000, 1), "owner": f.owner}
                for f in fs.list(path=".", recursive=True)
                if f.size > 1000000 and not f.is_dir
            ]
            weather.forecast(
                city="Oslo",
                days=2,
                unit="c",
                note="a long text that goes on and on until it is too long",
            )
            ok = (
                first_condition_of_many(1)
                and second_condition_of_many(2)
                and third_condition_of_many(3)
                and fourth(4)
            )
            x = a.b(1)[2].c(3, key=lambda a, b: a + b + 100000000000000002, other=300000000000000004)
        "#]],
    );
}

#[test]
fn comments_stay_where_they_belong() {
    check(
        "\n\n#why\n\nx = [1, # one\n 2 # two\n # end\n]\nif x:\n    # inside\n    print(x)\n    # still inside\n# outside\n\n    # also outside\nprint(len(x))   #last\n#end",
        expect![[r#"
            # why

            x = [
                1,  # one
                2,  # two
                # end
            ]
            if x:
                # inside
                print(x)
                # still inside
            # outside

            # also outside
            print(len(x))  # last
            # end
        "#]],
    );
}
