//! JSON text that can be read to its end, with nothing kept of it.
//!
//! Unlike serde's `IgnoredAny` it reads every string, number and escape as a value would, and stops at the reader's limit of
//! nesting: what passes here can be read as `serde_json::Value`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Proof that a text is JSON.
pub(crate) struct WellFormed;

impl<'de> Deserialize<'de> for WellFormed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WellFormed, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = WellFormed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("json")
    }

    fn visit_unit<E: Error>(self) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<WellFormed, A::Error> {
        while items.next_element::<WellFormed>()?.is_some() {}
        Ok(WellFormed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<WellFormed, A::Error> {
        while entries.next_entry::<WellFormed, WellFormed>()?.is_some() {}
        Ok(WellFormed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees(text: &[u8]) {
        let read = serde_json::from_slice::<WellFormed>(text).map(|_| ()).map_err(|e| e.to_string());
        let value = serde_json::from_slice::<serde_json::Value>(text).map(|_| ()).map_err(|e| e.to_string());
        assert_eq!(read, value, "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn what_it_takes_a_value_takes() {
        let nested = "[".repeat(200);
        let texts = [
            r#"{"a": [1, -2, 3.5, null, true, "x\\n"]}"#,
            r#"["\ud800"]"#,
            "[1e999]",
            "{\"a\" 1}",
            "[1,]",
            &nested,
            "",
        ];
        texts.iter().for_each(|text| agrees(text.as_bytes()));
        agrees(b"[\"\x80\"]");
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_value_on_any_text(text in r#"[\[\]{}:,"\\0-9a-fu.eE+ -]{0,40}"#) {
            agrees(text.as_bytes());
        }
    }
}
