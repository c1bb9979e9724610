//! `mote eval`: how well tools are found, on catalogues with queries of which the right tools are known.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use crate::cli::tools::anchor;
use crate::cli::{Globals, interrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;
use crate::tools::toolspace::{self, Filling, Query, Toolspace};
use crate::tools::{Anchor, Comparison, Index, Ranking, ToolId};

/// Tools among which those that are wanted should be.
const TOP: usize = 5;

/// Tools that a catalogue may be filled up to.
const MAX_TOOLS: usize = 100_000;

const RANKINGS: [Ranking; 4] = [Ranking::Plain, Ranking::Words, Ranking::Anchor, Ranking::Hybrid];

#[derive(Subcommand, Debug)]
pub(crate) enum EvalCommand {
    /// Measure retrieval on every NAME.catalogue.jsonl of a folder with the query files beside it
    Retrieval {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The bundle in whose embedding layer tools are compared; the default bundle, if there is one
        #[arg(long, value_name = "BUNDLE")]
        model: Option<String>,
        /// Fill each catalogue up to so many tools: with those of the others, then with made-up ones
        #[arg(long, value_name = "N", default_value_t = 0)]
        tools: usize,
        /// With what: `public` are tools that may answer the queries too, `machines` are made up and answer none
        #[arg(long, value_enum, default_value_t = Fill::Public)]
        fill: Fill,
    },
    /// Write a made-up toolspace into a folder that is then used as MOTE_HOME
    Toolspace {
        /// The folder: its mcp.json is replaced
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How many servers
        #[arg(long, value_name = "N", default_value_t = 300)]
        servers: usize,
        /// How many tools in all
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        tools: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fill {
    Public,
    Machines,
}

/// One line of the table.
#[derive(Serialize)]
struct Row {
    catalogue: String,
    queries: String,
    split: Option<String>,
    n: usize,
    tools: usize,
    bm25: Reach,
    words: Reach,
    anchor: Option<Reach>,
    hybrid: Reach,
    ms_per_query: f64,
}

/// Means over queries: the first tool is wanted; the share of what is wanted among the first five.
#[derive(Clone, Copy, Default, Serialize)]
struct Reach {
    hit1: f64,
    recall5: f64,
}

pub(crate) fn run(command: &EvalCommand, globals: &Globals) -> Result<u8> {
    interrupt::end_soon_after(&globals.cancel)?;
    let (folder, model, tools, filling) = match command {
        EvalCommand::Retrieval { folder, model, tools, fill: Fill::Public } => (folder, model, tools, Filling::Public),
        EvalCommand::Retrieval { folder, model, tools, fill: Fill::Machines } => {
            (folder, model, tools, Filling::Machines)
        }
        EvalCommand::Toolspace { folder, servers, tools } => {
            toolspace::generate(&Home::at(folder), *servers, *tools, &globals.cancel)?;
            let done = json!({"folder": folder, "servers": servers, "tools": tools});
            if globals.out.json() {
                globals.out.object(&done)?;
            } else {
                globals.out.line(&format!("{servers} servers with {tools} tools: MOTE_HOME={}", folder.display()))?;
            }
            return Ok(0);
        }
    };
    if *tools > MAX_TOOLS {
        return Err(Error::new(ErrorKind::Usage, format!("too many tools: limit {MAX_TOOLS}, used {tools}")));
    }
    let spaces = Toolspace::all(folder)?;
    let anchor = anchor(model.as_deref(), globals)?;
    if anchor.is_none() {
        globals.out.message("mote: without an anchor the hybrid is its lexical half");
    }
    if !globals.out.json() {
        let names = format!("{:13} {:13} {:13} {:13}", "bm25", "words", "anchor", "hybrid");
        globals
            .out
            .line(&format!("{:34} {:9} {:>6} {:>6}  {names} {:>8}", "queries", "split", "tools", "n", "ms/query"))?;
    }
    for space in &spaces {
        measure(space, &spaces, (*tools, filling), anchor.as_ref(), globals)?;
    }
    Ok(0)
}

fn measure(
    space: &Toolspace,
    all: &[Toolspace],
    (n_tools, filling): (usize, Filling),
    anchor: Option<&Anchor>,
    globals: &Globals,
) -> Result<()> {
    let loaded = space.load(all, n_tools, filling, anchor);
    for notice in &loaded.notices {
        globals.out.message(&format!("mote: {}: {notice}", space.name));
    }
    let comparison = Comparison::new(Index::new(&loaded.catalogue, anchor));
    for (file, queries) in space.queries()? {
        let mut splits: BTreeMap<Option<String>, Vec<Query>> = BTreeMap::new();
        for query in queries {
            splits.entry(query.split.clone()).or_default().push(query);
        }
        for (split, queries) in splits {
            let mut reached = [Reach::default(); RANKINGS.len()];
            let mut seconds = 0.0;
            for (ranking, reach) in RANKINGS.into_iter().zip(&mut reached) {
                let started = Instant::now();
                *reach = reach_of(&comparison, ranking, &queries, &loaded.by_name, globals)?;
                seconds = started.elapsed().as_secs_f64();
            }
            let [bm25, words, by_anchor, hybrid] = reached;
            let n = queries.len();
            let row = Row {
                catalogue: space.name.clone(),
                queries: file.clone(),
                split,
                n,
                tools: loaded.catalogue.n_tools(),
                bm25,
                words,
                anchor: anchor.map(|_| by_anchor),
                hybrid,
                ms_per_query: (seconds * 1e6 / n as f64).round() / 1e3,
            };
            show(&row, globals)?;
        }
    }
    Ok(())
}

fn reach_of(
    comparison: &Comparison<'_>,
    ranking: Ranking,
    queries: &[Query],
    by_name: &HashMap<String, ToolId>,
    globals: &Globals,
) -> Result<Reach> {
    let (mut hits, mut recall) = (0usize, 0.0);
    for query in queries {
        if globals.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        let gold: Vec<Option<&ToolId>> = query.gold.iter().map(|name| by_name.get(name)).collect();
        let found = comparison.search(ranking, &query.query, TOP)?;
        hits += usize::from(found.first().is_some_and(|first| gold.contains(&Some(first))));
        let n_found = gold.iter().flatten().filter(|wanted| found.contains(wanted)).count();
        recall += n_found as f64 / gold.len().max(1) as f64;
    }
    let n = queries.len().max(1) as f64;
    Ok(Reach { hit1: rounded(hits as f64 / n), recall5: rounded(recall / n) })
}

fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

fn show(row: &Row, globals: &Globals) -> Result<()> {
    if globals.out.json() {
        return globals.out.object(row);
    }
    let reach = |reach: &Reach| format!("{:.3} / {:.3}", reach.hit1, reach.recall5);
    let none = || "-".to_owned();
    let split = row.split.as_deref().unwrap_or("-");
    globals.out.line(&format!(
        "{:34} {split:9} {:>6} {:>6}  {:13} {:13} {:13} {:13} {:>8.3}",
        row.queries,
        row.tools,
        row.n,
        reach(&row.bm25),
        reach(&row.words),
        row.anchor.as_ref().map_or_else(none, reach),
        reach(&row.hybrid),
        row.ms_per_query
    ))
}
