//! JSON as Python's `json.dumps(ensure_ascii=False)` prints it, which is what chat templates were
//! written and models trained with: ", " and ": ", and no escape that JSON does not need.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            w.write_all(b", ")
        }
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            w.write_all(b", ")
        }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }
}

/// `indent`: spaces per level, on lines of their own; None = one line.
pub fn to_spaced_json(value: &impl Serialize, indent: Option<usize>) -> String {
    let mut out = Vec::new();
    let written = match indent {
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)),
        Some(n) => {
            let spaces = " ".repeat(n);
            let pretty = PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut out, pretty))
        }
    };
    match written {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => "null".into(), // a value JSON has no form for, such as a function
    }
}
