//! `network`: interfaces, their addresses and traffic.

use super::{parsed, short_text};
use crate::Error;
use crate::bounds::{Rows, human_size};
use crate::context::Call;
use procfs_core::FromRead;
use procfs_core::net::InterfaceDeviceStatus;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn network(call: &Call<'_>) -> Result<Value, Error> {
    let devices = parsed(call, "/proc/net/dev", InterfaceDeviceStatus::from_read)?.0;
    let mut devices: Vec<_> = devices.into_values().collect();
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    let addresses = addresses(call)?;
    let mut rows = Rows::new(call, usize::MAX);
    for device in devices {
        call.check()?;
        let name = device.name.trim_end_matches(':');
        let own: Vec<&str> =
            addresses.iter().filter(|(interface, _)| interface == name).map(|(_, address)| address.as_str()).collect();
        let base = format!("/sys/class/net/{name}");
        let state = match short_text(call, &format!("{base}/operstate")).as_deref() {
            Some("unknown") | None if !own.is_empty() => "up",
            Some("up") => "up",
            Some("down" | "lowerlayerdown" | "notpresent") => "down",
            _ => "unknown",
        };
        let (received, sent) = (human_size(device.recv_bytes), human_size(device.sent_bytes));
        let shown = if own.is_empty() { "no address".to_owned() } else { own.join(" ") };
        let line = format!("{name}: {state}, {shown}, received {received}, sent {sent}");
        let row = json!({
            "name": name, "state": state, "addresses": own, "mac": short_text(call, &format!("{base}/address")),
            "received_bytes": device.recv_bytes, "sent_bytes": device.sent_bytes, "received": received, "sent": sent,
        });
        if !rows.push(row, &line) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (interfaces, text) = rows.finish(|| "there is no network interface".to_owned());
    Ok(json!({"count": count, "interfaces": interfaces, "truncated": truncated, "text": text}))
}

/// Interface and address; the kernel tells them by a system call only, so a simulated machine has none.
fn addresses(call: &Call<'_>) -> Result<Vec<(String, String)>, Error> {
    if call.context.system_root != Path::new("/") {
        return Ok(Vec::new());
    }
    let found = if_addrs::get_if_addrs().map_err(|e| Error::io("read", "the network addresses", &e))?;
    Ok(found.into_iter().map(|interface| (interface.name.clone(), interface.ip().to_string())).collect())
}
