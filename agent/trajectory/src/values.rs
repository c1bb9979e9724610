//! The values that fields are made of: each refuses what it cannot mean, and each has two forms, a compact one in
//! postcard and a readable one in JSON.
//!
//! The readable form is for export only: `Deserialize` reads postcard.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::json::{ABSENT, JSON};

/// A value, or the reason why it could not be recorded.
///
/// In JSON an absent one is null, with its reason in the `absent` object of the object it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<T> {
    /// What was recorded.
    Value(T),
    /// Why nothing was.
    Absent(Reason),
}

/// Why a field is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The process ended before it was known; also what a field says until it is known.
    #[default]
    Crash,
    /// Recording is `light`: output rows outside the grammar mask were not computed.
    Masked,
    /// A script stood in for the model.
    Scripted,
    /// This turn was not written by the model.
    NotGenerated,
    /// There is none: no adapter, no template, no grammar, no proof.
    None,
    /// Nobody has judged it yet.
    NotJudged,
    /// This version does not measure it.
    NotMeasured,
    /// It was larger than a record may be.
    TooLarge,
    /// It was NaN or infinite.
    NotFinite,
    /// It was redacted, or consent was missing.
    Withheld,
    /// Its bytes on disk were damaged.
    Corrupt,
}

impl<T> Recorded<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// `Value`, or absent for `reason`.
    pub fn or_absent(value: Option<T>, reason: Reason) -> Self {
        value.map_or(Self::Absent(reason), Self::Value)
    }
}

impl<T> Default for Recorded<T> {
    fn default() -> Self {
        Self::Absent(Reason::Crash)
    }
}

impl<T> From<T> for Recorded<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T: Serialize> Serialize for Recorded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) if serializer.is_human_readable() => value.serialize(serializer),
            Self::Absent(reason) if serializer.is_human_readable() => marked(serializer, ABSENT, reason),
            Self::Value(value) => Ok::<&T, Reason>(value).serialize(serializer),
            Self::Absent(reason) => Err::<&T, Reason>(*reason).serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Recorded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Result::<T, Reason>::deserialize(deserializer)? {
            Ok(value) => Self::Value(value),
            Err(reason) => Self::Absent(reason),
        })
    }
}

fn marked<S: Serializer>(serializer: S, mark: &str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(mark, value)?;
    map.end()
}

/// The name of a trajectory: a ULID, 26 characters, sortable by time where the clock could be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrajectoryId(ulid::Ulid);

impl TrajectoryId {
    /// A new one, of the clock and 80 random bits.
    pub fn generate() -> Self {
        Self(ulid::Ulid::generate())
    }

    /// The one with these 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(ulid::Ulid::from_bytes(bytes))
    }

    /// Its 16 bytes, which sort as the id does.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }
}

impl fmt::Display for TrajectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TrajectoryId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        ulid::Ulid::from_string(text)
            .map(Self)
            .map_err(|_| Error::Value { what: "trajectory id", value: text.chars().take(64).collect() })
    }
}

impl Serialize for TrajectoryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.to_bytes().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for TrajectoryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u8; 16]>::deserialize(deserializer).map(Self::from_bytes)
    }
}

/// A SHA-256 digest: 32 bytes, in JSON 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl FromStr for Sha256 {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Value { what: "sha256", value: text.chars().take(80).collect() };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| refused())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
        }
        Ok(Self(digest))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <[u8; 32]>::deserialize(deserializer).map(Self)
    }
}

/// A moment of the wall clock, to the millisecond; in JSON as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// What the clock says now.
    pub fn now() -> Self {
        Self::from_unix_ms(jiff::Timestamp::now().as_millisecond()).unwrap_or(Self(jiff::Timestamp::UNIX_EPOCH))
    }

    /// `ms` milliseconds after the start of 1970; `None` outside the years -9999 to 9999.
    pub fn from_unix_ms(ms: i64) -> Option<Self> {
        jiff::Timestamp::from_millisecond(ms).ok().map(Self)
    }

    /// Milliseconds since the start of 1970.
    pub fn unix_ms(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.unix_ms().serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ms = i64::deserialize(deserializer)?;
        Self::from_unix_ms(ms).ok_or_else(|| D::Error::custom("time out of range"))
    }
}

/// A number that is neither NaN nor infinite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Finite(f32);

impl Finite {
    /// `number`, if it is finite.
    pub fn new(number: f32) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// All of `numbers`, or absent if one of them is not finite.
    pub fn all(numbers: &[f32]) -> Recorded<Vec<Self>> {
        Recorded::or_absent(numbers.iter().copied().map(Self::new).collect(), Reason::NotFinite)
    }

    /// The number.
    pub fn get(self) -> f32 {
        self.0
    }
}

impl Serialize for Finite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            // The shortest decimal of the f32, so that 0.3 is written 0.3 and not 0.30000001192092896.
            self.0.to_string().parse::<f64>().map_err(S::Error::custom)?.serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f32::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("number not finite"))
    }
}

/// A JSON value kept as its text, because postcard does not describe itself; in JSON it is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// `text`, if it is one JSON value nested no deeper than `serde_json` reads (128).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Malformed`] if it is not.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        serde_json::from_str::<serde_json::Value>(&text)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&serde_json::Value> for JsonText {
    fn from(value: &serde_json::Value) -> Self {
        Self(value.to_string())
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { marked(serializer, JSON, &self.0) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
