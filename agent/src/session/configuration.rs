//! The configuration of a stage: an immutable value with a version, replaced and never changed.

use crate::tools::ToolId;

/// Sub-goal, strategy, toolbox and carried knowledge (q, sigma, T, K).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    version: u32,
    goal: String,
    strategy: String,
    tools: Vec<ToolId>,
    knowledge: String,
}

impl Configuration {
    /// The first configuration of a task: its goal is the task itself.
    pub fn first(task: &str, tools: Vec<ToolId>) -> Configuration {
        Configuration { version: 1, goal: task.into(), strategy: String::new(), tools, knowledge: String::new() }
    }

    /// The configuration that follows this one.
    pub fn next(&self, goal: String, strategy: String, tools: Vec<ToolId>, knowledge: String) -> Configuration {
        Configuration { version: self.version + 1, goal, strategy, tools, knowledge }
    }

    /// Counts from 1.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The sub-goal, q.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The strategy, sigma.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The toolbox, T, best first.
    pub fn tools(&self) -> &[ToolId] {
        &self.tools
    }

    /// The knowledge carried over, K.
    pub fn knowledge(&self) -> &str {
        &self.knowledge
    }

    /// Whether `other` says anything else than this one.
    pub fn differs(&self, other: &Configuration) -> bool {
        (&self.goal, &self.strategy, &self.tools, &self.knowledge)
            != (&other.goal, &other.strategy, &other.tools, &other.knowledge)
    }

    /// What the prompt shows of it: nothing for a first one, whose goal is the task.
    pub fn text(&self) -> String {
        if self.version == 1 {
            return String::new();
        }
        let line = |name: &str, value: &str| {
            if value.is_empty() { String::new() } else { format!("{name}: {value}\n") }
        };
        format!("{}{}", line("Known", &self.knowledge), line("Strategy", &self.strategy))
    }
}
