//! A date or time as people write it.

use crate::Error;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, ZonedDateTime};

const MAX_BYTES: usize = 100;

/// Forms of a date with and without a time; day before month, as the forms with a dot or a slash are read in most of the world.
const DATE_FORMS: [&str; 12] = [
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%d. %B %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%A, %d %B %Y",
    "%Y%m%d",
];
const TIME_FORMS: [&str; 6] = ["%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M%p", "%I %p", "%I%p"];

/// Days that people call by a name, the next of which is meant: month and day.
const NAMED_DAYS: [(&str, i8, i8); 4] =
    [("christmas", 12, 25), ("christmas eve", 12, 24), ("new year", 1, 1), ("halloween", 10, 31)];

/// A moment and how exactly it was given.
pub(super) struct Moment {
    pub(super) zoned: ZonedDateTime,
    /// Given as a day, without a time.
    pub(super) is_date: bool,
    /// Given as `now`.
    pub(super) is_now: bool,
}

impl Moment {
    /// Reads `text`; what it leaves open is taken from `zone` and from today.
    pub(super) fn parse(text: &str, zone: &TimeZone) -> Result<Self, Error> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(Error::limit("date in bytes", MAX_BYTES as u64, text.len() as u64));
        }
        let now = ZonedDateTime::now().with_time_zone(zone.clone());
        let day = |offset: i64| Self::of_date(now.date().checked_add(offset.days()).ok(), zone);
        let found = match text.to_ascii_lowercase().as_str() {
            "now" | "" => Some(Self { zoned: now.clone(), is_date: false, is_now: true }),
            "today" => day(0),
            "tomorrow" => day(1),
            "yesterday" => day(-1),
            name if NAMED_DAYS.iter().any(|(named, ..)| *named == name) => Self::named(name, now.date(), zone),
            _ => Self::exact(text, zone).or_else(|| Self::written(text, &now, zone)),
        };
        found.ok_or_else(|| {
            Error::invalid(format!("is no date or time: {text}"))
                .with_hint("write 2026-03-01, 15:30 or 2026-03-01 15:30")
        })
    }

    /// The beginning of the same day.
    pub(super) fn midnight(self) -> Result<Self, Error> {
        let zoned = self.zoned.start_of_day().map_err(|_| Error::invalid("the date is out of range"))?;
        Ok(Self { zoned, is_date: true, is_now: false })
    }

    /// As short as it was given.
    pub(super) fn shown(&self) -> String {
        let form = if self.is_date { "%Y-%m-%d" } else { "%Y-%m-%d %H:%M" };
        self.zoned.strftime(form).to_string()
    }

    /// ISO 8601, RFC 9557 and RFC 2822.
    fn exact(text: &str, zone: &TimeZone) -> Option<Self> {
        let at = |zoned: ZonedDateTime| Self { zoned, is_date: false, is_now: false };
        if let Ok(zoned) = text.parse::<ZonedDateTime>() {
            return Some(at(zoned));
        }
        if let Ok(timestamp) = text.parse::<Timestamp>() {
            return Some(at(timestamp.to_zoned_datetime(zone.clone())));
        }
        if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
            return Some(at(zoned));
        }
        if text.len() == DATE_BYTES
            && let Ok(date) = text.parse::<Date>()
        {
            return Self::of_date(Some(date), zone);
        }
        if text.len() > DATE_BYTES
            && let Ok(datetime) = text.parse::<DateTime>()
        {
            return datetime.to_zoned_datetime(zone.clone()).ok().map(at);
        }
        None
    }

    fn written(text: &str, now: &ZonedDateTime, zone: &TimeZone) -> Option<Self> {
        let parse = |form: &str| BrokenDownTime::parse(form, text).ok();
        let at = |datetime: DateTime| {
            datetime.to_zoned_datetime(zone.clone()).ok().map(|zoned| Self { zoned, is_date: false, is_now: false })
        };
        if let Some(time) = TIME_FORMS.iter().find_map(|form| written_time(&parse(form)?)) {
            return at(now.date().to_datetime(time));
        }
        for date_form in DATE_FORMS {
            if let Some(date) = parse(date_form).and_then(|found| found.to_date().ok()) {
                return Self::of_date(Some(date), zone);
            }
            for time_form in TIME_FORMS {
                let Some(found) = parse(&format!("{date_form} {time_form}")) else { continue };
                if let (Ok(date), Some(time)) = (found.to_date(), written_time(&found)) {
                    return at(date.to_datetime(time));
                }
            }
        }
        None
    }

    fn named(name: &str, today: Date, zone: &TimeZone) -> Option<Self> {
        let (_, month, day) = NAMED_DAYS.into_iter().find(|(named, ..)| *named == name)?;
        let in_year = |year| Date::new(year, month, day).ok();
        let date = in_year(today.year()).filter(|date| *date >= today).or_else(|| in_year(today.year() + 1));
        Self::of_date(date, zone)
    }

    fn of_date(date: Option<Date>, zone: &TimeZone) -> Option<Self> {
        let zoned = date?.to_zoned_datetime(zone.clone()).ok()?;
        Some(Self { zoned, is_date: true, is_now: false })
    }
}

/// Bytes of `2026-03-01`.
const DATE_BYTES: usize = 10;

fn written_time(found: &BrokenDownTime) -> Option<Time> {
    found.to_time().ok()
}
