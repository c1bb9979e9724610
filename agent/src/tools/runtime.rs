//! The way from a call in a program to a result: names, policy, the pack or server behind it, bounds.
//!
//! Everything that goes wrong in a call is a [`ToolFailure`], which the model sees; only what keeps a session from starting (an
//! `mcp.json` that does not parse, a pack that does not exist) is an error. Opening never waits longer for servers than
//! [`ToolOptions::discovery`]: who has not answered by then is named in a notice and taken in by [`ToolRuntime::refresh`].

mod discovery;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mote_toolpacks::Notes;
use serde_json::{Map, Value};

use super::calls::{Permitted, ToolRequest};
use super::catalogue::{self, Catalogue, Kept, Server, ServerKind, ServerState, ToolId, sha256};
use super::learn::Lessons;
use super::mcp::{self, Fleet, Manifests};
use super::policy::{Answer, Decision, Policy};
use super::result::ToolFailure;
use super::retrieval::{Anchor, Index};
use super::sandbox::{self, SandboxMode};
use super::spill::Spill;
use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;
use crate::store::LazyNotes;
use discovery::{named, taken, undiscovered};

/// How long opening waits for servers that were never seen before.
const DISCOVERY: Duration = Duration::from_secs(5);

/// What of that a server gets that did not answer in time when it was asked before: enough for one that runs well again.
const LATE_SHARE: u32 = 5;

/// Asks a person whether something may be done.
pub type Asker = Box<dyn Fn(&str) -> Answer>;

/// What a session may use, and how.
pub struct ToolOptions {
    /// The built-in packs by name; all of them if not given.
    pub packs: Option<Vec<String>>,
    /// The file of MCP servers; that of the home folder, if there is one, if not given.
    pub mcp: Option<PathBuf>,
    /// Where relative paths start and servers run.
    pub working_dir: PathBuf,
    /// Folders under which packs may write.
    pub writable: Vec<PathBuf>,
    /// Folders below which alone packs may read; everywhere if there are none.
    pub readable: Vec<PathBuf>,
    /// How servers and packs are confined.
    pub sandbox: SandboxMode,
    /// Patterns of tools that are asked for, whatever they do.
    pub ask: Vec<String>,
    /// Patterns of tools that may run without asking.
    pub allow: Vec<String>,
    /// Patterns of tools that may not run.
    pub deny: Vec<String>,
    /// Asks a person; without one, what would be asked is denied.
    pub asker: Option<Asker>,
    /// Where notes lie; the store of the state folder if not given, opened when the first note is asked for.
    pub notes: Option<Box<dyn Notes>>,
    /// How long opening may wait for servers that were never seen before.
    pub discovery: Duration,
    /// The program that guards servers; mote itself, or what `MOTE_GUARD_EXE` names, if not given.
    pub guardian: Option<PathBuf>,
    /// The model's own embedding layer, by which tools are compared; without one, by words alone.
    pub anchor: Option<Anchor>,
}

impl Default for ToolOptions {
    fn default() -> Self {
        ToolOptions {
            packs: None,
            mcp: None,
            working_dir: PathBuf::from("."),
            writable: Vec::new(),
            readable: Vec::new(),
            sandbox: SandboxMode::default(),
            ask: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            asker: None,
            notes: None,
            discovery: DISCOVERY,
            guardian: None,
            anchor: None,
        }
    }
}

/// The file in the cache that holds what is known of every server.
const CATALOGUE_FILE: &str = "catalogue.bin";

/// Part of every key: another version of mote may know something else of the same tools.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The tools of one session.
pub struct ToolRuntime {
    catalogue: Catalogue,
    anchor: Option<Anchor>,
    /// Where the catalogue is kept, and whether it holds what is not there yet.
    file: PathBuf,
    is_new: bool,
    policy: Policy,
    notices: Vec<String>,
    /// Packs whose names servers have taken.
    replaced: Vec<Server>,
    manifests: Manifests,
    pub(super) lessons: Lessons,
    pub(super) spill: Spill,
    pub(super) fleet: Option<Fleet>,
    pub(super) working_dir: PathBuf,
    pub(super) writable: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) sandbox: SandboxMode,
    asker: Option<Asker>,
    pub(super) notes: Box<dyn Notes>,
    pub(super) cancel: Cancel,
}

impl ToolRuntime {
    /// Reads packs and `mcp.json`, takes in what is remembered of the servers and asks those that are new.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if `mcp.json` cannot be read or parsed, or if there is to be a sandbox and there is none,
    /// [`ErrorKind::Usage`] if a pack does not exist.
    pub fn open(home: &Home, options: ToolOptions, cancel: Cancel) -> Result<ToolRuntime> {
        let file = home.cache().join(CATALOGUE_FILE);
        let mut kept = catalogue::open(&file).unwrap_or_default();
        let anchor = options.anchor;
        let (mut servers, mut is_new) = (Vec::new(), false);
        for pack in packs(options.packs.as_deref())? {
            let key = sha256([VERSION, &format!("{pack:?}")].map(str::as_bytes));
            let server = match taken(&mut kept, &pack.name, key, &mut is_new, anchor.as_ref()) {
                Some(found) => {
                    let mut server = Server::new(&pack.name, &pack.name, ServerKind::Pack);
                    server.restore(found, anchor.as_ref());
                    server
                }
                None => {
                    let mut server =
                        Server::from_pack(pack, anchor.as_ref()).map_err(|why| Error::new(ErrorKind::Failed, why))?;
                    server.key = Some(key);
                    server
                }
            };
            servers.push(server);
        }
        let path = options.mcp.or_else(|| Some(home.mcp_json()).filter(|path| path.exists()));
        let configuration = path.map(|path| mcp::read(&path, &cancel)).transpose()?.unwrap_or_default();
        let mut notices = configuration.notices;
        notices.extend(sandbox::open(options.sandbox)?);
        let members = named(configuration.servers);
        for (name, server) in &members {
            if !servers.iter().any(|pack| pack.name == *name) {
                servers.push(undiscovered(name, server));
            }
        }
        let mut runtime = ToolRuntime {
            catalogue: Catalogue::new(servers),
            anchor,
            file,
            is_new,
            policy: Policy::open(&home.policy_json(), &options.ask, &options.allow, &options.deny, &cancel)?,
            notices,
            replaced: Vec::new(),
            manifests: Manifests::below(home.cache()),
            spill: Spill::below(home.cache()),
            lessons: Lessons::below(home.data()),
            fleet: None,
            working_dir: options.working_dir,
            writable: options.writable,
            readable: options.readable,
            sandbox: options.sandbox,
            asker: options.asker,
            notes: options.notes.unwrap_or_else(|| Box::new(LazyNotes::at(home.store()))),
            cancel,
        };
        if !members.is_empty() {
            runtime.muster(members, kept, mcp::guardian(options.guardian), options.discovery)?;
        }
        runtime.keep();
        Ok(runtime)
    }

    /// Every server and tool that is known.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Who may be called.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Retrieval over the catalogue.
    pub fn index(&self) -> Index<'_> {
        Index::new(&self.catalogue, self.anchor.as_ref())
    }

    /// What a person should know and was not told yet; each notice is given once.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Takes in servers that have answered meanwhile, without waiting; whether the catalogue has changed.
    pub fn refresh(&mut self) -> bool {
        let found = self.fleet.as_mut().map(Fleet::found).unwrap_or_default();
        let changed = !found.is_empty();
        if changed {
            self.take_in(found);
            self.keep();
        }
        changed
    }

    /// Writes the catalogue's file if something is new: the next start maps it.
    fn keep(&mut self) {
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        let servers = self.catalogue.servers().iter().chain(&self.replaced);
        let kept = servers.filter_map(|server| Some((server.name.clone(), server.kept()?)));
        let kept: BTreeMap<String, Kept> = kept.collect();
        if let Err(error) = catalogue::write(&self.file, kept) {
            tracing::debug!("the catalogue is not kept: {}: {error}", self.file.display());
        }
    }

    /// Asks policy and whoever is there, and starts the server if need be.
    pub(super) fn permitted(&mut self, request: &ToolRequest<'_>) -> std::result::Result<Permitted, ToolFailure> {
        let ToolRequest { server, tool, arguments } = *request;
        let id = ToolId::new(server, tool);
        let writes = self.catalogue.tool(server, tool).ok_or_else(|| self.unknown(&id))?.writes;
        self.permit(&id.to_string(), writes, arguments)?;
        let entry = self.catalogue.tool(server, tool).ok_or_else(|| self.unknown(&id))?;
        let (wire_name, schema_sha256) = (entry.wire_name.clone(), entry.schema_sha256.clone());
        let is_pack = self.catalogue.server(server).is_some_and(|server| server.kind == ServerKind::Pack);
        let arguments = if is_pack { arguments.clone() } else { on_the_wire(&entry.signature, arguments) };
        if !is_pack {
            self.start(server, &id, &wire_name, &schema_sha256)?;
        }
        Ok(Permitted { server: server.to_owned(), wire_name, arguments, is_pack })
    }

    pub(super) fn fleet(&mut self, server: &str) -> std::result::Result<&mut Fleet, ToolFailure> {
        self.fleet.as_mut().ok_or_else(|| ToolFailure::new("server", format!("the server cannot run: {server}")))
    }

    fn permit(
        &mut self,
        id: &str,
        writes: bool,
        arguments: &Map<String, Value>,
    ) -> std::result::Result<(), ToolFailure> {
        let allow = format!("a person can allow it: --allow \"{id}\"");
        match self.policy.decide(id, writes) {
            Decision::Allow => Ok(()),
            Decision::Deny => Err(ToolFailure::new("denied", format!("policy forbids this tool: {id}"))),
            Decision::Ask => match self.asker.as_ref().map(|ask| ask(&question(id, writes, arguments))) {
                Some(Answer::Yes) => Ok(()),
                Some(Answer::Always) => {
                    self.remember(id, Decision::Allow);
                    Ok(())
                }
                Some(answer) => {
                    if answer == Answer::Never {
                        self.remember(id, Decision::Deny);
                    }
                    Err(ToolFailure::new("denied", format!("the person said no to: {id}")))
                }
                None => {
                    let why = if writes { "it may change something" } else { "it is to be asked for" };
                    Err(ToolFailure::new("denied", format!("{why} and nobody is there to ask: {id}")).with_hint(allow))
                }
            },
        }
    }

    fn remember(&mut self, id: &str, decision: Decision) {
        if let Err(error) = self.policy.remember(id, decision) {
            self.notices.push(format!("what was said of {id} holds for this session only: {}", error.message()));
        }
    }

    /// Starts the server if need be; a tool that is no longer what the program was written for is not called.
    fn start(
        &mut self,
        server: &str,
        id: &ToolId,
        wire_name: &str,
        schema_sha256: &str,
    ) -> std::result::Result<(), ToolFailure> {
        let listing = match self.fleet(server)?.start(server) {
            Ok(None) => return Ok(()),
            Ok(Some(listing)) => listing,
            Err(failure) => {
                self.set_state(server, ServerState::Failed(failure.message.clone()));
                return Err(self.restore_pack(server, failure));
            }
        };
        let changes = self.changes(server, &listing);
        if !changes.is_empty() {
            self.notices.push(format!("server {server} has changed since it was last seen: {}", changes.join(", ")));
            self.take_in(vec![(server.to_owned(), Ok(listing))]);
            self.keep();
        }
        self.set_state(server, ServerState::Started);
        let now =
            self.catalogue.server(server).and_then(|server| server.tools().find(|tool| tool.wire_name == wire_name));
        match now {
            Some(entry) if entry.schema_sha256 == schema_sha256 => Ok(()),
            Some(entry) => {
                Err(ToolFailure::new("schema_changed", format!("the tool has changed and was not called: {id}"))
                    .with_hint(format!("it is now {}", entry.signature.line())))
            }
            None => Err(ToolFailure::new("schema_changed", format!("the server no longer has this tool: {id}"))),
        }
    }

    fn set_state(&mut self, server: &str, state: ServerState) {
        if let Some(server) = self.catalogue.server_mut(server) {
            server.state = state;
        }
    }

    fn unknown(&self, id: &ToolId) -> ToolFailure {
        let failure = ToolFailure::new("unknown_tool", format!("no such tool: {id}"));
        match self.catalogue.server(&id.server) {
            Some(server) => match &server.state {
                ServerState::Discovering => {
                    failure.with_hint("its server has not said yet what tools it has, try again later")
                }
                ServerState::Failed(why) => failure.with_hint(format!("its server cannot be used: {why}")),
                _ => failure.with_hint(format!("tools of {}: {}", id.server, names(server.tool_names()))),
            },
            None => failure.with_hint(format!(
                "servers: {}",
                names(self.catalogue.servers().iter().map(|server| server.name.as_str()))
            )),
        }
    }
}

fn packs(wanted: Option<&[String]>) -> Result<Vec<mote_toolpacks::Pack>> {
    let packs = mote_toolpacks::builtin().map_err(|error| Error::new(ErrorKind::Failed, error.message()))?;
    let known = names(packs.iter().map(|pack| pack.name.as_str()));
    if let Some(name) = wanted.into_iter().flatten().find(|name| !packs.iter().any(|pack| pack.name == **name)) {
        return Err(
            Error::new(ErrorKind::Usage, format!("no such pack: {name}")).with_hint(format!("built-in packs: {known}"))
        );
    }
    Ok(packs.into_iter().filter(|pack| wanted.is_none_or(|wanted| wanted.contains(&pack.name))).collect())
}

/// Arguments under the names that the server knows; those of the action language are understood too.
fn on_the_wire(signature: &mote_script::Signature, arguments: &Map<String, Value>) -> Map<String, Value> {
    let params = &signature.params;
    let wire_name = |name: &String| {
        let known = params
            .iter()
            .find(|param| param.wire_name == *name)
            .or_else(|| params.iter().find(|param| param.name == *name));
        known.map_or_else(|| name.clone(), |param| param.wire_name.clone())
    };
    arguments.iter().map(|(name, value)| (wire_name(name), value.clone())).collect()
}

fn question(id: &str, writes: bool, arguments: &Map<String, Value>) -> String {
    const MAX_CHARS: usize = 400;
    let text = Value::Object(arguments.clone()).to_string();
    let shown: String = text.chars().take(MAX_CHARS).collect();
    let more = if shown.len() < text.len() { ".." } else { "" };
    let what = if writes { "may change something" } else { "only reads" };
    format!("{id} {what}; call it with {shown}{more}?")
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 24;
    let mut names: Vec<&str> = all.take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES {
        names.truncate(MAX_NAMES);
        names.push("..");
    }
    names.join(", ")
}

pub(super) fn pack_kind(kind: mote_toolpacks::ErrorKind) -> &'static str {
    use mote_toolpacks::ErrorKind as Kind;
    match kind {
        Kind::InvalidManifest => "invalid_manifest",
        Kind::UnknownTool => "unknown_tool",
        Kind::InvalidArgument => "invalid_argument",
        Kind::NotFound => "not_found",
        Kind::Permission => "permission",
        Kind::Limit { .. } => "limit",
        Kind::Io => "io",
        Kind::Unsupported => "unsupported",
        Kind::Cancelled => "cancelled",
        _ => "tool",
    }
}
