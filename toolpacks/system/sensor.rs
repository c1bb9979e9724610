//! `temperature`: thermal zones, and hardware monitors where there are none.

use super::{place, round, short_text};
use crate::bounds::Rows;
use crate::context::Call;
use crate::{Error, ErrorKind};
use serde_json::{Value, json};

const MAX_DEVICES: usize = 64;
const MAX_INPUTS: usize = 16;
/// Sensors that are not connected report absurd values.
const PLAUSIBLE_CELSIUS: std::ops::Range<f64> = -60.0..200.0;

pub(super) fn temperature(call: &Call<'_>) -> Result<Value, Error> {
    let mut sensors = Vec::new();
    for zone in names(call, "/sys/class/thermal", "thermal_zone") {
        let base = format!("/sys/class/thermal/{zone}");
        let name = short_text(call, &format!("{base}/type")).unwrap_or(zone);
        sensors.extend(celsius(call, &format!("{base}/temp")).map(|celsius| (name, celsius)));
    }
    for device in names(call, "/sys/class/hwmon", "hwmon") {
        let base = format!("/sys/class/hwmon/{device}");
        let chip = short_text(call, &format!("{base}/name")).unwrap_or(device);
        for input in 1..=MAX_INPUTS {
            call.check()?;
            let Some(celsius) = celsius(call, &format!("{base}/temp{input}_input")) else { continue };
            let label = short_text(call, &format!("{base}/temp{input}_label"));
            let name = label.map_or(chip.clone(), |label| format!("{chip} {label}"));
            if !sensors.iter().any(|(known, _)| *known == name) {
                sensors.push((name, celsius));
            }
        }
    }
    let mut rows = Rows::new(call, usize::MAX);
    for (name, celsius) in &sensors {
        if !rows.push(json!({"name": name, "celsius": celsius}), &format!("{name}: {celsius} °C")) {
            break;
        }
    }
    let Some((hottest, celsius)) = sensors.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Err(Error::new(ErrorKind::Unsupported, "this machine shows no temperature sensor"));
    };
    let truncated = rows.truncated();
    let (found, text) = rows.finish(String::new);
    Ok(json!({"celsius": celsius, "hottest": hottest, "sensors": found, "truncated": truncated, "text": text}))
}

/// The entries of `folder` that start with `prefix`, in order.
fn names(call: &Call<'_>, folder: &str, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place(call, folder)) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).take(MAX_DEVICES).collect();
    names.sort();
    names
}

fn celsius(call: &Call<'_>, path: &str) -> Option<f64> {
    let thousandths: f64 = short_text(call, path)?.parse().ok()?;
    Some(round(thousandths / 1000.0, 10.0)).filter(|celsius| PLAUSIBLE_CELSIUS.contains(celsius))
}
