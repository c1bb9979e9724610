//! Who may be called: allow, ask or deny, per tool.
//!
//! A tool that only reads is allowed; one that writes is asked for. Rules come before that: those of the session, then those that are
//! remembered, and denial before all. Asking needs a person: without one, ask means deny. Policy never looks into arguments.
//!
//! What a person wants remembered lies in `policy.json`, versioned; a file that cannot be read is an error, because a denial may stand in it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};
use crate::text_file::TextFile;

/// The version of the file.
const VERSION: u32 = 1;

/// Remembered rules.
const MAX_RULES: usize = 1024;

const FILE: TextFile = TextFile {
    what: "the policy's file",
    max_bytes: 1 << 20,
    kind: ErrorKind::Configuration,
    hint: Some(
        "such a file has {\"version\": 1, \"rules\": [{\"tools\": \"git.*\", \"effect\": \"writes\", \"decision\": \"ask\"}]}",
    ),
};

/// What policy says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides, each time.
    Ask,
    /// It may not run.
    Deny,
}

/// What a person says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Not now.
    No,
    /// This time.
    Yes,
    /// This time and whenever the tool is called; it is remembered.
    Always,
    /// Neither now nor ever; it is remembered.
    Never,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        if yes { Answer::Yes } else { Answer::No }
    }
}

/// What tools do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// They change nothing.
    Reads,
    /// They may change something.
    Writes,
}

/// One rule: a pattern on `server.tool`, in which `*` stands for anything, and what holds for the tools that fit it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    tools: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    decision: Decision,
}

impl Rule {
    fn of(tools: &str, decision: Decision) -> Rule {
        Rule { tools: tools.to_owned(), effect: None, decision }
    }

    fn fits(&self, id: &str, writes: bool) -> bool {
        let effect = if writes { Effect::Writes } else { Effect::Reads };
        self.effect.is_none_or(|wanted| wanted == effect) && matches(&self.tools, id)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    version: u32,
    rules: Vec<Rule>,
}

/// The rules of one session, and where what is remembered lies.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    session: Vec<Rule>,
    remembered: Vec<Rule>,
    file: PathBuf,
}

impl Policy {
    /// Rules of a session from patterns such as `fs.write` and `time.*`, and those that `file` remembers, if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read, is of another version or says what is no rule.
    pub fn open(file: &Path, ask: &[String], allow: &[String], deny: &[String], cancel: &Cancel) -> Result<Policy> {
        let rules = |patterns: &[String], decision| {
            patterns.iter().map(|pattern| Rule::of(pattern, decision)).collect::<Vec<_>>()
        };
        let session = [rules(deny, Decision::Deny), rules(ask, Decision::Ask), rules(allow, Decision::Allow)].concat();
        Ok(Policy { session, remembered: read(file, cancel)?, file: file.to_path_buf() })
    }

    /// What holds for the tool `id`, which changes something if `writes`.
    pub fn decide(&self, id: &str, writes: bool) -> Decision {
        let mut fitting = self.session.iter().chain(&self.remembered).filter(|rule| rule.fits(id, writes)).peekable();
        let first = fitting.peek().map(|rule| rule.decision);
        if fitting.any(|rule| rule.decision == Decision::Deny) {
            return Decision::Deny;
        }
        first.unwrap_or(if writes { Decision::Ask } else { Decision::Allow })
    }

    /// Remembers what a person said of the tool `id` for all time to come.
    ///
    /// # Errors
    /// If it cannot be written down; it holds for this session all the same.
    pub(crate) fn remember(&mut self, id: &str, decision: Decision) -> Result<()> {
        let rule = Rule::of(id, decision);
        self.session.insert(0, rule.clone());
        write(&self.file, rule)
    }
}

fn read(file: &Path, cancel: &Cancel) -> Result<Vec<Rule>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let broken = |what: String| {
        Error::new(ErrorKind::Configuration, format!("{what}: {}", file.display()))
            .with_hint("correct the file, or move it away to forget what it remembers")
    };
    let text = FILE.read(file, cancel)?;
    let remembered: Remembered =
        serde_json::from_str(&text).map_err(|error| broken(format!("the policy's file does not parse, {error}")))?;
    if remembered.version != VERSION {
        let version = remembered.version;
        return Err(broken(format!("the policy's file has version {version}, this binary reads {VERSION}")));
    }
    if remembered.rules.len() > MAX_RULES {
        let used = remembered.rules.len();
        return Err(broken(format!("the policy has too many rules: limit {MAX_RULES}, used {used}")));
    }
    Ok(remembered.rules)
}

/// Puts a rule before those that are remembered, in the place of one for the same tools; a power cut leaves the old file or the new one.
fn write(file: &Path, rule: Rule) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Failed, format!("the policy cannot be written ({error}): {}", file.display()))
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(file.with_extension("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut rules = read(file, &Cancel::default())?;
    rules.retain(|other| (&other.tools, other.effect) != (&rule.tools, rule.effect));
    rules.insert(0, rule);
    if rules.len() > MAX_RULES {
        let used = rules.len();
        return Err(Error::new(
            ErrorKind::Failed,
            format!("the policy would have too many rules: limit {MAX_RULES}, used {used}"),
        ));
    }
    let text = serde_json::to_string_pretty(&Remembered { version: VERSION, rules })
        .map_err(|error| Error::new(ErrorKind::Failed, error.to_string()))?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    fresh.write_all(format!("{text}\n").as_bytes()).and_then(|()| fresh.as_file().sync_all()).map_err(failed)?;
    fresh.persist(file).map_err(|error| failed(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
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

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn open(file: &Path, ask: &[&str], allow: &[&str], deny: &[&str]) -> Result<Policy> {
        Policy::open(file, &strings(ask), &strings(allow), &strings(deny), &Cancel::default())
    }

    #[test]
    fn rules_come_before_the_default_and_denial_before_allowance() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("policy.json");
        let policy = open(&none, &["git.log"], &["fs.write", "git.*"], &["git.push", "*.secret"]).unwrap();
        let decisions = [
            ("fs.read", false),
            ("fs.write", true),
            ("fs.delete", true),
            ("git.push", true),
            ("git.add", true),
            ("git.log", false),
            ("x.secret", false),
        ]
        .map(|(id, writes)| policy.decide(id, writes));
        use Decision::{Allow, Ask, Deny};
        assert_eq!(decisions, [Allow, Allow, Ask, Deny, Allow, Ask, Deny]);
    }

    #[test]
    fn what_is_remembered_holds_the_next_time_and_denial_holds_always() {
        use Decision::{Allow, Ask, Deny};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("below/policy.json");
        let mut policy = open(&file, &[], &[], &[]).unwrap();
        policy.remember("git.add", Allow).unwrap();
        policy.remember("git.push", Deny).unwrap();
        assert_eq!([policy.decide("git.add", true), policy.decide("git.push", true)], [Allow, Deny]);
        let mut next = open(&file, &["git.add"], &["*"], &[]).unwrap();
        assert_eq!([next.decide("git.add", true), next.decide("git.push", true)], [Ask, Deny]);
        next.remember("git.push", Allow).unwrap();
        assert_eq!(open(&file, &[], &[], &[]).unwrap().decide("git.push", true), Allow);
        let text = "{\"version\": 1, \"rules\": [{\"tools\": \"a.*\", \"effect\": \"writes\", \"decision\": \"allow\"}, {\"tools\": \"*\", \"decision\": \"ask\"}]}";
        fs::write(&file, text).unwrap();
        let policy = open(&file, &[], &[], &[]).unwrap();
        assert_eq!(
            [policy.decide("a.b", true), policy.decide("a.b", false), policy.decide("c.d", false)],
            [Allow, Ask, Ask]
        );
    }

    #[test]
    fn a_file_that_cannot_be_believed_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.json");
        for text in
            ["", "{}", "{\"version\": 2, \"rules\": []}", "{\"version\": 1, \"rules\": [{\"tools\": \"*\"}]}", "[1]"]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(open(&file, &[], &[], &[]).unwrap_err().kind(), ErrorKind::Configuration, "{text}");
        }
    }
}
