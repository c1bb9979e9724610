//! What the model sees of a program's run: what it printed and its error, within a bound.

/// Shortens `text` to at most about `max_bytes`: whole lines from the start, then how many lines were left out.
///
/// Gives the text and the number of lines left out. A single line that is too long is cut at a character.
pub(super) fn bounded(text: &str, max_bytes: usize) -> (String, usize) {
    let text = text.trim_end();
    if text.len() <= max_bytes {
        return (text.to_owned(), 0);
    }
    let mut kept = String::new();
    let mut lines = text.lines();
    let mut n_elided = 0;
    for line in lines.by_ref() {
        if kept.len() + line.len() + 1 > max_bytes {
            n_elided = 1;
            if kept.is_empty() {
                kept.push_str(&line[..line.floor_char_boundary(max_bytes)]);
                kept.push_str("..\n");
            }
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    n_elided += lines.count();
    kept.push_str(&format!("({n_elided} more lines omitted; print less)"));
    (kept, n_elided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_first_lines_and_counts_the_rest() {
        assert_eq!(bounded("a\nb\n", 10), ("a\nb".to_owned(), 0));
        assert_eq!(
            bounded("aaaa\nbbbb\ncccc\ndddd", 11),
            ("aaaa\nbbbb\n(2 more lines omitted; print less)".to_owned(), 2)
        );
        assert_eq!(bounded("ééééé", 5), ("éé..\n(1 more lines omitted; print less)".to_owned(), 1));
    }
}
