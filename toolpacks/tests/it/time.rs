//! `time`: zones as people write them, and the calendar.

use crate::fixture::Fixture;
use expect_test::expect;
use serde_json::Value;

fn zone_of(asked: &str) -> String {
    match Fixture::new().call("time.now", &serde_json::json!({"zone": asked}).to_string()) {
        Ok(result) => format!("{} ({})", result["zone"].as_str().unwrap(), result["city"].as_str().unwrap()),
        Err(e) => format!("error: {e}"),
    }
}

#[test]
fn finds_zones_by_name_city_country_and_offset() {
    let asked = [
        "Europe/Berlin",
        "europe/berlin",
        "Berlin",
        "new york",
        "New_York",
        "San Francisco",
        "MUMBAI",
        "Paris, France",
        "Japan",
        "Germany",
        "UTC",
        "utc+5:30",
        "GMT-3",
        "+0200",
        "EST",
        "Rome",
        "york",
        "Atlantis",
        "UTC+99",
        "Hong Kong",
        "../etc/passwd",
    ];
    let found: String =
        asked.iter().map(|asked| format!("{asked:15} {}\n", zone_of(asked).replace('\n', "; "))).collect();
    expect![[r#"
        Europe/Berlin   Europe/Berlin (Berlin)
        europe/berlin   Europe/Berlin (Berlin)
        Berlin          Europe/Berlin (Berlin)
        new york        America/New_York (New York)
        New_York        America/New_York (New York)
        San Francisco   America/Los_Angeles (San Francisco)
        MUMBAI          Asia/Kolkata (Mumbai)
        Paris, France   Europe/Paris (Paris)
        Japan           Japan (Japan)
        Germany         Europe/Berlin (Germany)
        UTC             UTC (UTC)
        utc+5:30        UTC+5:30 (UTC+5:30)
        GMT-3           GMT-3 (GMT-3)
        +0200           +0200 (+0200)
        EST             EST (EST)
        Rome            Europe/Rome (Rome)
        york            error: no such time zone or city: york; hint: perhaps: America/New_York
        Atlantis        error: no such time zone or city: Atlantis; hint: write it as Continent/City, such as Europe/Berlin
        UTC+99          error: no such time zone or city: UTC+99; hint: write it as Continent/City, such as Europe/Berlin
        Hong Kong       Asia/Hong_Kong (Hong Kong)
        ../etc/passwd   error: no such time zone or city: ../etc/passwd; hint: write it as Continent/City, such as Europe/Berlin
    "#]].assert_eq(&found);
}

#[test]
fn now_is_now() {
    let result = Fixture::new().call("time.now", r#"{"zone": "Asia/Tokyo"}"#).unwrap();
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((result["unix"].as_i64().unwrap() - unix).abs() <= 2);
    let tokyo = result["unix"].as_i64().unwrap() + 9 * 3600;
    assert_eq!(result["time"], format!("{:02}:{:02}", tokyo / 3600 % 24, tokyo / 60 % 60));
    assert_eq!(result["utc_offset"], "+09:00");
}

#[test]
fn says_how_long_until_a_date() {
    let fixture = Fixture::new();
    for days in [33, -33] {
        let then =
            fixture.call("time.add", &format!(r#"{{"start": "today", "days": {days}}}"#)).unwrap()["date"].clone();
        let until = fixture.call("time.until", &format!(r#"{{"date": {then}}}"#)).unwrap();
        let then = then.as_str().unwrap();
        let text = if days > 0 { format!("it is 33 days until {then}") } else { format!("{then} was 33 days ago") };
        assert_eq!((&until["days"], &until["text"]), (&days.into(), &text.into()));
    }
    let christmas = fixture.call("time.until", r#"{"date": "Christmas"}"#).unwrap();
    assert!(christmas["date"].as_str().unwrap().ends_with("-12-25"), "{christmas}");
    assert!((0..=366).contains(&christmas["days"].as_i64().unwrap()), "{christmas}");
}

#[test]
fn calculates_with_dates() {
    let calls = [
        ("time.convert", r#"{"time": "2026-03-01 15:00", "from_zone": "Berlin", "to_zone": "New York"}"#),
        ("time.convert", r#"{"time": "2026-07-01T15:00:00Z", "to_zone": "Asia/Kolkata"}"#),
        ("time.convert", r#"{"time": "noonish", "to_zone": "Tokyo"}"#),
        ("time.difference", r#"{"start": "2026-03-01", "end": "2026-03-11"}"#),
        ("time.difference", r#"{"start": "2026-03-11", "end": "2026-03-01"}"#),
        ("time.difference", r#"{"start": "2026-03-01 10:00", "end": "1 March 2026 12:30"}"#),
        ("time.difference", r#"{"start": "2026-03-01 10:00", "end": "2026-03-01 10:00"}"#),
        ("time.add", r#"{"start": "2024-01-31", "months": 1}"#),
        ("time.add", r#"{"start": "2026-03-01 23:30", "minutes": 45}"#),
        ("time.add", r#"{"start": "2026-03-01", "years": 9999}"#),
        ("time.add", r#"{"days": 1.5}"#),
        ("time.parse", r#"{"text": "24.12.2026"}"#),
        ("time.parse", r#"{"text": "Dec 24, 2026"}"#),
        ("time.parse", r#"{"text": "24 December 2026 6:30 pm"}"#),
        ("time.parse", r#"{"text": "2026-02-30"}"#),
        ("time.format", r#"{"time": "2026-03-01 15:04", "format": "%A %d.%m.%y, %H:%M"}"#),
        ("time.format", r#"{"time": "2026-03-01", "format": "%Q"}"#),
        ("time.format", r#"{"time": "2026-03-01", "format": "%9999999Y"}"#),
    ];
    let said = Fixture::new().transcript(&calls);
    expect![[r#"
        time.convert {"time": "2026-03-01 15:00", "from_zone": "Berlin", "to_zone": "New York"}
          15:00 in Berlin is 09:00 on Sunday, 1 March 2026 in New York
        time.convert {"time": "2026-07-01T15:00:00Z", "to_zone": "Asia/Kolkata"}
          15:00 local time is 20:30 on Wednesday, 1 July 2026 in Kolkata
        time.convert {"time": "noonish", "to_zone": "Tokyo"}
          error: is no date or time: noonish
          hint: write 2026-03-01, 15:30 or 2026-03-01 15:30
        time.difference {"start": "2026-03-01", "end": "2026-03-11"}
          from 2026-03-01 to 2026-03-11 it is 10 days
        time.difference {"start": "2026-03-11", "end": "2026-03-01"}
          from 2026-03-11 to 2026-03-01 it is -10 days
        time.difference {"start": "2026-03-01 10:00", "end": "1 March 2026 12:30"}
          from 2026-03-01 10:00 to 2026-03-01 12:30 it is 2 hours 30 minutes
        time.difference {"start": "2026-03-01 10:00", "end": "2026-03-01 10:00"}
          from 2026-03-01 10:00 to 2026-03-01 10:00 it is 0 seconds
        time.add {"start": "2024-01-31", "months": 1}
          Thursday, 29 February 2024
        time.add {"start": "2026-03-01 23:30", "minutes": 45}
          00:15, Monday, 2 March 2026
        time.add {"start": "2026-03-01", "years": 9999}
          error: the date is out of range
          hint: years -9999 to 9999
        time.add {"days": 1.5}
          error: time.add(days) must be an integer, not: 1.5
        time.parse {"text": "24.12.2026"}
          24 December 2026 is a Thursday
        time.parse {"text": "Dec 24, 2026"}
          24 December 2026 is a Thursday
        time.parse {"text": "24 December 2026 6:30 pm"}
          24 December 2026 is a Thursday
        time.parse {"text": "2026-02-30"}
          error: is no date or time: 2026-02-30
          hint: write 2026-03-01, 15:30 or 2026-03-01 15:30
        time.format {"time": "2026-03-01 15:04", "format": "%A %d.%m.%y, %H:%M"}
          Sunday 01.03.26, 15:04
        time.format {"time": "2026-03-01", "format": "%Q"}
          Etc/UTC
        time.format {"time": "2026-03-01", "format": "%9999999Y"}
          error: format is not valid: %9999999Y
          hint: %d.%m.%Y or %H:%M
    "#]]
    .assert_eq(&said);
}

#[test]
fn tells_the_week_and_the_day_of_the_year() {
    let result = Fixture::new().call("time.parse", r#"{"text": "2026-07-14"}"#).unwrap();
    let field = |name: &str| result[name].clone();
    assert_eq!(field("week"), Value::from(29));
    assert_eq!(field("day_of_year"), Value::from(195));
    assert_eq!(field("leap_year"), Value::from(false));
    assert_eq!(field("weekday"), Value::from("Tuesday"));
}
