//! Time zones by IANA name, city, country or offset.

use crate::{Error, ErrorKind};
use jiff::tz::{self, TimeZone, TimeZoneDatabase};
use std::collections::HashMap;
use std::sync::OnceLock;

const MAX_NAME_BYTES: usize = 100;
const MAX_SUGGESTIONS: usize = 5;

/// Big cities and countries that give no zone its name. Countries of several zones stand for their capital's.
const PLACES: [(&str, &str); 76] = [
    ("abuja", "Africa/Lagos"),
    ("ankara", "Europe/Istanbul"),
    ("argentina", "America/Argentina/Buenos_Aires"),
    ("atlanta", "America/New_York"),
    ("auckland", "Pacific/Auckland"),
    ("austin", "America/Chicago"),
    ("austria", "Europe/Vienna"),
    ("bangalore", "Asia/Kolkata"),
    ("barcelona", "Europe/Madrid"),
    ("basel", "Europe/Zurich"),
    ("beijing", "Asia/Shanghai"),
    ("belgium", "Europe/Brussels"),
    ("bengaluru", "Asia/Kolkata"),
    ("bern", "Europe/Zurich"),
    ("birmingham", "Europe/London"),
    ("bombay", "Asia/Kolkata"),
    ("boston", "America/New_York"),
    ("brasilia", "America/Sao_Paulo"),
    ("canberra", "Australia/Sydney"),
    ("cape town", "Africa/Johannesburg"),
    ("chennai", "Asia/Kolkata"),
    ("china", "Asia/Shanghai"),
    ("cologne", "Europe/Berlin"),
    ("dallas", "America/Chicago"),
    ("delhi", "Asia/Kolkata"),
    ("denmark", "Europe/Copenhagen"),
    ("dusseldorf", "Europe/Berlin"),
    ("edinburgh", "Europe/London"),
    ("england", "Europe/London"),
    ("finland", "Europe/Helsinki"),
    ("florence", "Europe/Rome"),
    ("france", "Europe/Paris"),
    ("frankfurt", "Europe/Berlin"),
    ("geneva", "Europe/Zurich"),
    ("germany", "Europe/Berlin"),
    ("gothenburg", "Europe/Stockholm"),
    ("greece", "Europe/Athens"),
    ("guangzhou", "Asia/Shanghai"),
    ("hamburg", "Europe/Berlin"),
    ("hanoi", "Asia/Bangkok"),
    ("houston", "America/Chicago"),
    ("hyderabad", "Asia/Kolkata"),
    ("india", "Asia/Kolkata"),
    ("ireland", "Europe/Dublin"),
    ("islamabad", "Asia/Karachi"),
    ("italy", "Europe/Rome"),
    ("kenya", "Africa/Nairobi"),
    ("kyoto", "Asia/Tokyo"),
    ("las vegas", "America/Los_Angeles"),
    ("lyon", "Europe/Paris"),
    ("manchester", "Europe/London"),
    ("marseille", "Europe/Paris"),
    ("miami", "America/New_York"),
    ("milan", "Europe/Rome"),
    ("montreal", "America/Toronto"),
    ("mumbai", "Asia/Kolkata"),
    ("munich", "Europe/Berlin"),
    ("netherlands", "Europe/Amsterdam"),
    ("new delhi", "Asia/Kolkata"),
    ("norway", "Europe/Oslo"),
    ("nyc", "America/New_York"),
    ("osaka", "Asia/Tokyo"),
    ("ottawa", "America/Toronto"),
    ("philadelphia", "America/New_York"),
    ("rio de janeiro", "America/Sao_Paulo"),
    ("san francisco", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("shenzhen", "Asia/Shanghai"),
    ("south korea", "Asia/Seoul"),
    ("spain", "Europe/Madrid"),
    ("st. petersburg", "Europe/Moscow"),
    ("sweden", "Europe/Stockholm"),
    ("switzerland", "Europe/Zurich"),
    ("uk", "Europe/London"),
    ("washington", "America/New_York"),
    ("wellington", "Pacific/Auckland"),
];

/// A time zone and how it is called.
pub(super) struct Zone {
    pub(super) zone: TimeZone,
    /// The IANA name, or the offset.
    pub(super) name: String,
    /// The city as people write it; `None` for the local zone and for offsets.
    pub(super) city: Option<String>,
    is_local: bool,
}

impl Zone {
    /// `in Berlin`, `local time`, `UTC+2`.
    pub(super) fn place(&self) -> String {
        match &self.city {
            Some(city) => format!("in {city}"),
            None if self.is_local => "local time".to_owned(),
            None => self.name.clone(),
        }
    }

    /// `local`, an IANA name in any case, a city or country, `UTC+2` or `+02:00`.
    pub(super) fn find(asked: &str) -> Result<Self, Error> {
        let asked = asked.trim();
        if asked.len() > MAX_NAME_BYTES {
            return Err(Error::limit("zone in bytes", MAX_NAME_BYTES as u64, asked.len() as u64));
        }
        if asked.is_empty() || asked.eq_ignore_ascii_case("local") || asked.eq_ignore_ascii_case("here") {
            let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
            let name = zone.iana_name().unwrap_or("local").to_owned();
            return Ok(Self { zone, name, city: None, is_local: true });
        }
        if let Some(offset) = offset(asked) {
            return Ok(Self { zone: TimeZone::fixed(offset), name: asked.to_uppercase(), city: None, is_local: false });
        }
        let spoken = spoken(asked);
        if let Some(place) = places().get(&spoken).or_else(|| places().get(spoken.split(',').next()?.trim())) {
            let city = place.city.clone().unwrap_or_else(|| titled(&spoken));
            return Ok(Self { zone: load(&place.zone)?, name: place.zone.clone(), city: Some(city), is_local: false });
        }
        if let Ok(zone) = load(asked) {
            let name = zone.iana_name().unwrap_or(asked).to_owned();
            return Ok(Self { city: Some(city_of(&name)), name, zone, is_local: false });
        }
        Err(unknown(asked, &spoken))
    }
}

struct Place {
    zone: String,
    /// As the zone writes it; `None` when the asked place is not the zone's own city.
    city: Option<String>,
}

/// What people say, in lower case with spaces -> the zone.
fn places() -> &'static HashMap<String, Place> {
    static PLACES_BY_NAME: OnceLock<HashMap<String, Place>> = OnceLock::new();
    PLACES_BY_NAME.get_or_init(|| {
        let mut places: HashMap<String, Place> = HashMap::new();
        for name in TimeZoneDatabase::bundled().available() {
            let zone = name.as_str();
            let Some((_, city)) = zone.rsplit_once('/') else { continue };
            if zone.starts_with("Etc/") || zone.starts_with("posix/") || zone.starts_with("right/") {
                continue;
            }
            let shorter = places.get(&spoken(city)).is_none_or(|known| zone.len() < known.zone.len());
            if shorter {
                places.insert(spoken(city), Place { zone: zone.to_owned(), city: Some(city_of(zone)) });
            }
        }
        for (spoken, zone) in PLACES {
            places.entry(spoken.to_owned()).or_insert_with(|| Place { zone: zone.to_owned(), city: None });
        }
        places
    })
}

fn load(name: &str) -> Result<TimeZone, Error> {
    tz::db()
        .get(name)
        .or_else(|_| TimeZoneDatabase::bundled().get(name))
        .map_err(|_| Error::new(ErrorKind::NotFound, format!("no such time zone: {name}")))
}

fn unknown(asked: &str, spoken: &str) -> Error {
    let mut near: Vec<&str> = places()
        .iter()
        .filter(|(name, _)| spoken.len() > 2 && (name.contains(spoken) || spoken.contains(name.as_str())))
        .map(|(_, place)| place.zone.as_str())
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(MAX_SUGGESTIONS);
    let error = Error::new(ErrorKind::NotFound, format!("no such time zone or city: {asked}"));
    match near.is_empty() {
        true => error.with_hint("write it as Continent/City, such as Europe/Berlin"),
        false => error.with_hint(format!("perhaps: {}", near.join(", "))),
    }
}

/// `UTC+2`, `GMT-03:30`, `+0530`.
fn offset(asked: &str) -> Option<jiff::tz::Offset> {
    let upper = asked.to_ascii_uppercase();
    let rest = upper.trim_start_matches("UTC").trim_start_matches("GMT").trim();
    if rest.is_empty() {
        return Some(jiff::tz::Offset::UTC);
    }
    let (sign, digits) = match rest.as_bytes().first()? {
        b'+' => (1, &rest[1..]),
        b'-' => (-1, &rest[1..]),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: i32 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() > 2 { (value / 100, value % 100) } else { (value, 0) };
    if minutes > 59 {
        return None;
    }
    jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

fn spoken(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], " ")
}

fn city_of(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

fn titled(spoken: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    };
    spoken.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
