//! Who may be called: allow, ask or deny, per tool.
//!
//! A tool that only reads is allowed; one that writes is asked for. Rules come before that, the first that matches decides, and denial
//! comes before allowance. Asking needs a person: without one, ask means deny. Policy never looks into arguments.

/// What policy says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides, each time.
    Ask,
    /// It may not run.
    Deny,
}

/// The rules of one session.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<(String, Decision)>,
}

impl Policy {
    /// Rules from patterns on `server.tool`, in which `*` stands for anything: `fs.write`, `time.*`.
    pub fn new(allow: &[String], deny: &[String]) -> Policy {
        let deny = deny.iter().map(|pattern| (pattern.clone(), Decision::Deny));
        let allow = allow.iter().map(|pattern| (pattern.clone(), Decision::Allow));
        Policy { rules: deny.chain(allow).collect() }
    }

    /// What holds for the tool `id`, which changes something if `writes`.
    pub fn decide(&self, id: &str, writes: bool) -> Decision {
        let rule = self.rules.iter().find(|(pattern, _)| matches(pattern, id));
        match rule {
            Some((_, decision)) => *decision,
            None if writes => Decision::Ask,
            None => Decision::Allow,
        }
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for any run of characters.
///
/// Each star takes as little as it can and the last part must stand at the end, so the time is bounded by the product of lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = text.split_once(part) else { return false };
        text = behind;
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow_matches(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|start| slow_matches(rest, &text[start..])),
            Some((first, rest)) => {
                text.split_first().is_some_and(|(head, tail)| head == first && slow_matches(rest, tail))
            }
        }
    }

    proptest! {
        #[test]
        fn matching_is_that_of_the_definition(pattern in "[ab.*]{0,7}", text in "[ab.]{0,8}") {
            prop_assert_eq!(matches(&pattern, &text), slow_matches(pattern.as_bytes(), text.as_bytes()));
        }
    }

    #[test]
    fn rules_come_before_the_default_and_denial_before_allowance() {
        let strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let policy = Policy::new(&strings(&["fs.write", "git.*"]), &strings(&["git.push", "*.secret"]));
        let decisions = [
            ("fs.read", false),
            ("fs.write", true),
            ("fs.delete", true),
            ("git.push", true),
            ("git.add", true),
            ("x.secret", false),
        ]
        .map(|(id, writes)| policy.decide(id, writes));
        use Decision::{Allow, Ask, Deny};
        assert_eq!(decisions, [Allow, Allow, Ask, Deny, Allow, Deny]);
    }
}
