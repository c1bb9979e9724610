//! What a server tells us without being asked: that it gets on with a call, and that its list of tools is no longer the same.
//!
//! What a server asks of us (sampling, roots, elicitation) is refused, as rmcp does where nothing is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::watch;

/// Hears one server; clones share what was heard.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    progress: Arc<watch::Sender<u64>>,
    tools_changed: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn new() -> Listener {
        Listener { progress: Arc::new(watch::Sender::new(0)), tools_changed: Arc::default() }
    }

    /// Changes whenever the server says that it gets on.
    pub(super) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }

    /// Whether the server has said that its tools changed since this was last asked.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Whether the server has said so; it stays said.
    pub(super) fn tools_changed(&self) -> bool {
        self.tools_changed.load(Ordering::Acquire)
    }
}

impl ClientHandler for Listener {
    async fn on_progress(&self, _params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.send_modify(|n| *n = n.wrapping_add(1));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Release);
    }

    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("mote", env!("CARGO_PKG_VERSION"));
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
}
