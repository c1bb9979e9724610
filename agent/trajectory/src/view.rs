//! What each kind of training wants of a trajectory, as rows of JSON; `docs/trajectory.md` describes them.
//!
//! A view selects and arranges, it never rounds, joins or guesses: text, token ids and log-probabilities are those that
//! were recorded, and what was not recorded is null with its reason.

use serde_json::{Map, Value, json};

use crate::json::lift;
use crate::{LabelSource, Recorded, Role, Stage, Trajectory, Turn, Verdict};

/// A kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Rejection-sampling fine-tuning: a row a successful trajectory.
    Rft,
    /// Kahneman-Tversky optimization: a row a generated turn of a labelled trajectory.
    Kto,
    /// Plackett-Luce ranking: a row a trajectory in which tools were selected.
    Ranking,
    /// Group-relative policy optimization: a row a trajectory, its task first.
    Grpo,
}

impl Trajectory {
    /// Whether it succeeded and who said so: its own label, else what a person said last.
    pub fn label(&self) -> Option<(bool, LabelSource)> {
        if let Some(&success) = self.outcome.success.value() {
            return Some((success, self.outcome.label_source));
        }
        let said = self.feedback.iter().rev().find_map(|feedback| match feedback.verdict {
            Verdict::Good => Some(true),
            Verdict::Bad => Some(false),
            Verdict::Note => None,
        });
        said.map(|success| (success, LabelSource::Person))
    }

    /// Its rows in `view`; none if the view has no use for it.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub fn rows(&self, view: View) -> Result<Vec<Value>, crate::Error> {
        let rows = match view {
            View::Rft => self.rft()?.into_iter().collect(),
            View::Kto => self.kto()?,
            View::Ranking => self.ranking()?.into_iter().collect(),
            View::Grpo => vec![self.grpo()?],
        };
        Ok(rows.into_iter().map(lift).collect::<Result<_, _>>()?)
    }

    fn rft(&self) -> Result<Option<Value>, serde_json::Error> {
        let Some((true, source)) = self.label() else { return Ok(None) };
        let mut row = self.head("rft")?;
        row.insert("label_source".into(), serde_json::to_value(source)?);
        let stages: Vec<Value> = self
            .stages
            .iter()
            .map(|stage| {
                let messages =
                    self.turns_of(stage, u32::MAX).map(|turn| self.message(turn)).collect::<Result<_, _>>()?;
                Ok(json!({ "i": stage.i, "tools": stage.configuration.tools, "messages": Value::Array(messages) }))
            })
            .collect::<Result<_, serde_json::Error>>()?;
        row.insert("stages".into(), Value::Array(stages));
        row.insert("reward".into(), serde_json::to_value(self.reward)?);
        Ok(Some(Value::Object(row)))
    }

    fn kto(&self) -> Result<Vec<Value>, serde_json::Error> {
        let Some((label, source)) = self.label() else { return Ok(Vec::new()) };
        let generated = self.turns.iter().filter(|turn| turn.role == Role::Assistant && turn.loss);
        generated
            .map(|turn| {
                let stage = self.stages.iter().find(|stage| stage.i == turn.stage);
                let before = stage.into_iter().flat_map(|stage| self.turns_of(stage, turn.i));
                let mut row = self.head("kto")?;
                row.insert("turn".into(), turn.i.into());
                row.insert("prompt".into(), before.map(plain_message).collect::<Result<_, _>>()?);
                row.insert("completion".into(), Value::Array(vec![plain_message(turn)?]));
                row.insert("label".into(), label.into());
                row.insert("label_source".into(), serde_json::to_value(source)?);
                row.extend(self.tokens(turn)?);
                Ok(Value::Object(row))
            })
            .collect()
    }

    fn ranking(&self) -> Result<Option<Value>, serde_json::Error> {
        if self.selections.is_empty() {
            return Ok(None);
        }
        let mut row = self.head("ranking")?;
        row.insert("selections".into(), serde_json::to_value(&self.selections)?);
        let spans = self.turns.iter().flat_map(|turn| turn.spans.iter().map(move |span| (turn, span)));
        let spans = spans.map(|(turn, span)| {
            let text = turn.content.get(span.start as usize..span.end as usize);
            json!({ "turn": turn.i, "kind": span.kind, "start": span.start, "end": span.end, "text": text })
        });
        row.insert("spans".into(), spans.collect());
        row.insert(
            "total".into(),
            serde_json::to_value(match self.reward {
                Recorded::Value(reward) => Recorded::Value(reward.total),
                Recorded::Absent(reason) => Recorded::Absent(reason),
            })?,
        );
        row.insert("label".into(), self.label().map(|(success, _)| success).into());
        Ok(Some(Value::Object(row)))
    }

    fn grpo(&self) -> Result<Value, serde_json::Error> {
        let mut row = self.head("grpo")?;
        row.insert("task".into(), serde_json::to_value(&self.header.task)?);
        row.insert("toolspace".into(), serde_json::to_value(&self.header.toolspace)?);
        row.insert("sampling".into(), serde_json::to_value(self.header.sampling)?);
        row.insert("recording".into(), serde_json::to_value(self.header.recording)?);
        let turns = self.turns.iter().filter(|turn| turn.loss).map(|turn| {
            let mut one: Map<String, Value> = json!({ "turn": turn.i }).as_object().cloned().unwrap_or_default();
            one.extend(self.tokens(turn)?);
            Ok(Value::Object(one))
        });
        row.insert("turns".into(), turns.collect::<Result<_, serde_json::Error>>()?);
        row.insert("reward".into(), serde_json::to_value(self.reward)?);
        row.insert("label".into(), self.label().map(|(success, _)| success).into());
        Ok(Value::Object(row))
    }

    /// What every row says: which trajectory, by which policy, with what.
    fn head(&self, view: &str) -> Result<Map<String, Value>, serde_json::Error> {
        let header = &self.header;
        let row = json!({
            "view": view,
            "traj_id": header.traj_id,
            "task_id": header.task_id,
            "group_id": header.group_id,
            "mode": header.mode,
            "policy": serde_json::to_value(&header.policy)?,
        });
        Ok(row.as_object().cloned().unwrap_or_default())
    }

    fn turns_of(&self, stage: &Stage, before: u32) -> impl Iterator<Item = &Turn> {
        let i = stage.i;
        self.turns.iter().filter(move |turn| turn.stage == i && turn.i < before)
    }

    fn message(&self, turn: &Turn) -> Result<Value, serde_json::Error> {
        let Value::Object(mut message) = plain_message(turn)? else { return Ok(Value::Null) };
        message.insert("turn".into(), turn.i.into());
        message.insert("kind".into(), serde_json::to_value(turn.kind)?);
        message.insert("loss".into(), u8::from(turn.loss).into());
        message.insert("calls".into(), serde_json::to_value(&turn.calls)?);
        message.extend(self.tokens(turn)?);
        Ok(Value::Object(message))
    }

    /// What a gradient is made of: the prompt rebuilt, the turn's own tokens, how they were drawn.
    fn tokens(&self, turn: &Turn) -> Result<Map<String, Value>, serde_json::Error> {
        let tokens = json!({
            "prompt_ids": serde_json::to_value(self.prompt_ids(turn.i))?,
            "completion_ids": serde_json::to_value(&turn.token_ids)?,
            "forced": serde_json::to_value(&turn.forced)?,
            "logprobs": serde_json::to_value(&turn.logprobs)?,
            "logprobs_free": serde_json::to_value(&turn.logprobs_free)?,
            "grammar_sha256": serde_json::to_value(turn.grammar_sha256)?,
        });
        Ok(tokens.as_object().cloned().unwrap_or_default())
    }
}

fn plain_message(turn: &Turn) -> Result<Value, serde_json::Error> {
    Ok(json!({ "role": serde_json::to_value(turn.role)?, "content": turn.content }))
}
