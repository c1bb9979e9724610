//! `time`: clocks, zones, dates.
//!
//! Zones come from the machine's database where it has one, else from the one in this binary, so that an empty root is enough.
//! Date arithmetic is the calendar's: a month after 31 January is 28 or 29 February.

mod moment;
mod zone;

use crate::arguments::Arguments;
use crate::context::Call;
use crate::{Error, catalogue};
use jiff::civil::Weekday;
use jiff::fmt::strtime;
use jiff::{Span, Unit, ZonedDateTime};
use moment::Moment;
use serde_json::{Value, json};
use zone::Zone;

const MAX_FORMAT_BYTES: usize = 200;
const MAX_FORMATTED_BYTES: usize = 4096;

pub(crate) fn call(tool: &str, arguments: &Arguments, _call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "now" => now(arguments),
        "today" => today(),
        "convert" => convert(arguments),
        "difference" => difference(arguments),
        "until" => until(arguments),
        "add" => add(arguments),
        "parse" => parse(arguments),
        "format" => format(arguments),
        _ => Err(catalogue::not_built(tool)),
    }
}

fn now(arguments: &Arguments) -> Result<Value, Error> {
    let zone = Zone::find(arguments.str("zone")?)?;
    let now = ZonedDateTime::now().with_time_zone(zone.zone.clone());
    let place = zone.city.as_ref().map_or(String::new(), |city| format!(" in {city}"));
    Ok(json!({
        "zone": zone.name, "city": zone.city.as_deref().unwrap_or(&zone.name), "time": clock(&now), "date": date(&now),
        "weekday": weekday(now.weekday()), "utc_offset": now.strftime("%:z").to_string(), "iso": iso(&now),
        "unix": now.timestamp().as_second(),
        "text": format!("It is {} on {}{place}", clock(&now), long_date(&now)),
    }))
}

fn today() -> Result<Value, Error> {
    let now = ZonedDateTime::now().with_time_zone(Zone::find("local")?.zone);
    Ok(json!({
        "date": date(&now), "weekday": weekday(now.weekday()), "week": now.date().iso_week_date().week(),
        "text": format!("Today is {}", long_date(&now)),
    }))
}

fn convert(arguments: &Arguments) -> Result<Value, Error> {
    let (given, from, to) =
        (arguments.str("time")?, Zone::find(arguments.str("from_zone")?)?, Zone::find(arguments.str("to_zone")?)?);
    let start = Moment::parse(given, &from.zone)?.zoned;
    let end = start.with_time_zone(to.zone.clone());
    let (from_place, to_place) = (from.place(), to.place());
    Ok(json!({
        "time": clock(&end), "date": date(&end), "weekday": weekday(end.weekday()), "zone": to.name, "city": to.city.as_deref().unwrap_or(&to.name),
        "iso": iso(&end),
        "text": format!("{} {from_place} is {} on {} {to_place}", clock(&start), clock(&end), long_date(&end)),
    }))
}

fn difference(arguments: &Arguments) -> Result<Value, Error> {
    let local = Zone::find("local")?.zone;
    let start = Moment::parse(arguments.str("start")?, &local)?;
    let mut end = Moment::parse(arguments.str("end")?, &local)?;
    if start.is_date && end.is_now {
        end = end.midnight()?;
    }
    let seconds = end.zoned.timestamp().as_second() - start.zoned.timestamp().as_second();
    let days = start.zoned.datetime().date().until(end.zoned.datetime().date()).map_err(out_of_range)?.get_days();
    let whole_days = if start.is_date && end.is_date {
        i64::from(days)
    } else {
        let span = start.zoned.until((Unit::Day, &end.zoned)).map_err(out_of_range)?;
        i64::from(span.get_days())
    };
    let duration = spelled(&start.zoned, &end.zoned, start.is_date && end.is_date)?;
    Ok(json!({
        "days": whole_days, "hours": rounded(seconds as f64 / 3600.0), "minutes": rounded(seconds as f64 / 60.0),
        "seconds": seconds, "duration": duration,
        "text": format!("from {} to {} it is {duration}", start.shown(), end.shown()),
    }))
}

fn until(arguments: &Arguments) -> Result<Value, Error> {
    let local = Zone::find("local")?.zone;
    let end = Moment::parse(arguments.str("date")?, &local)?;
    let now = Moment::parse(if end.is_date { "today" } else { "now" }, &local)?.zoned;
    let span = now.until((Unit::Day, &end.zoned)).map_err(out_of_range)?;
    let seconds = end.zoned.timestamp().as_second() - now.timestamp().as_second();
    let (shown, is_past) = (end.shown(), seconds < 0);
    let (from, to) = if is_past { (&end.zoned, &now) } else { (&now, &end.zoned) };
    let duration = spelled(from, to, end.is_date)?;
    let text = if is_past { format!("{shown} was {duration} ago") } else { format!("it is {duration} until {shown}") };
    Ok(json!({
        "date": date(&end.zoned), "days": span.get_days(), "hours": rounded(seconds as f64 / 3600.0),
        "duration": duration, "text": text,
    }))
}

fn add(arguments: &Arguments) -> Result<Value, Error> {
    let local = Zone::find("local")?.zone;
    let start = Moment::parse(arguments.str("start")?, &local)?;
    let span = Span::new()
        .try_years(arguments.int("years")?)
        .and_then(|span| span.try_months(arguments.int("months").unwrap_or(0)))
        .and_then(|span| span.try_weeks(arguments.int("weeks").unwrap_or(0)))
        .and_then(|span| span.try_days(arguments.int("days").unwrap_or(0)))
        .and_then(|span| span.try_hours(arguments.int("hours").unwrap_or(0)))
        .and_then(|span| span.try_minutes(arguments.int("minutes").unwrap_or(0)))
        .map_err(out_of_range)?;
    let end = start.zoned.checked_add(span).map_err(out_of_range)?;
    let by_clock = arguments.int("hours")? != 0 || arguments.int("minutes")? != 0;
    let text =
        if start.is_date && !by_clock { long_date(&end) } else { format!("{}, {}", clock(&end), long_date(&end)) };
    Ok(json!({
        "time": clock(&end), "date": date(&end), "weekday": weekday(end.weekday()), "iso": iso(&end), "text": text,
    }))
}

fn parse(arguments: &Arguments) -> Result<Value, Error> {
    let moment = Moment::parse(arguments.str("text")?, &Zone::find("local")?.zone)?.zoned;
    let name = weekday(moment.weekday());
    Ok(json!({
        "date": date(&moment), "time": clock(&moment), "year": moment.year(), "month": moment.month(),
        "day": moment.day(), "weekday": name, "week": moment.date().iso_week_date().week(),
        "day_of_year": moment.day_of_year(), "leap_year": moment.in_leap_year(),
        "unix": moment.timestamp().as_second(), "iso": iso(&moment),
        "text": format!("{} is a {name}", moment.strftime("%-d %B %Y")),
    }))
}

fn format(arguments: &Arguments) -> Result<Value, Error> {
    let (given, format) = (arguments.str("time")?, arguments.str("format")?);
    if format.len() > MAX_FORMAT_BYTES {
        return Err(Error::limit("format in bytes", MAX_FORMAT_BYTES as u64, format.len() as u64));
    }
    let wide = format.as_bytes().windows(3).any(|w| w.iter().all(u8::is_ascii_digit));
    if wide {
        return Err(Error::invalid(format!("format is not valid: {format}")).with_hint("%d.%m.%Y or %H:%M"));
    }
    let moment = Moment::parse(given, &Zone::find("local")?.zone)?.zoned;
    let text = strtime::format(format, &moment)
        .map_err(|e| Error::invalid(format!("format is not valid ({e}): {format}")).with_hint("%d.%m.%Y or %H:%M"))?;
    if text.len() > MAX_FORMATTED_BYTES {
        return Err(Error::limit("formatted text in bytes", MAX_FORMATTED_BYTES as u64, text.len() as u64));
    }
    Ok(json!({"text": text}))
}

/// `3 days 4 hours`, `2 hours 5 minutes`: the two biggest units, the sign as `ago`-less minus.
fn spelled(start: &ZonedDateTime, end: &ZonedDateTime, only_days: bool) -> Result<String, Error> {
    let span = start.until((Unit::Day, end)).map_err(out_of_range)?;
    let parts = [
        (i64::from(span.get_days()), "day"),
        (i64::from(span.get_hours()), "hour"),
        (span.get_minutes(), "minute"),
        (span.get_seconds(), "second"),
    ];
    let parts = if only_days { &parts[..1] } else { &parts[..] };
    let words: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n != 0)
        .take(2)
        .map(|(n, unit)| format!("{n} {unit}{}", if n.abs() == 1 { "" } else { "s" }))
        .collect();
    Ok(match (words.is_empty(), only_days) {
        (true, true) => "0 days".to_owned(),
        (true, false) => "0 seconds".to_owned(),
        _ => words.join(" "),
    })
}

fn rounded(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn clock(moment: &ZonedDateTime) -> String {
    moment.strftime("%H:%M").to_string()
}

fn date(moment: &ZonedDateTime) -> String {
    moment.date().to_string()
}

fn long_date(moment: &ZonedDateTime) -> String {
    moment.strftime("%A, %-d %B %Y").to_string()
}

fn iso(moment: &ZonedDateTime) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

fn out_of_range(_: jiff::Error) -> Error {
    Error::invalid("the date is out of range").with_hint("years -9999 to 9999")
}
