//! Keeps control tokens the template's alone.
//!
//! Before rendering, one character of every place in a request's strings that could become (part
//! of) a control token is swapped for a Unicode noncharacter; `<|im_end|>` becomes `<?im_end?>`
//! with `?` such a stand-in. The template can still split, trim and compare its strings, and
//! whatever it puts together, a control token found in the output was written by the template.
//! After control tokens have been cut out, `restore` swaps the characters back.

use serde_json::Value;

/// Noncharacters U+FDD0..U+FDEF: never valid in interchange, so swapping foreign ones for U+FFFD
/// loses nothing.
const FIRST_STAND_IN: u32 = 0xFDD0;
const STAND_INS: usize = 32;

pub struct Guard {
    /// Texts of control tokens that hold no `|`; those with one need no search.
    bare: Vec<String>,
    /// Character number i stands as `FIRST_STAND_IN + i`.
    guarded: Vec<char>,
}

impl Guard {
    /// None when the control tokens start with more different characters than there are stand-ins.
    pub fn new(control_texts: &[String]) -> Option<Self> {
        let bare: Vec<String> =
            control_texts.iter().filter(|t| !t.contains('|')).cloned().collect();
        let mut guarded = vec!['|'];
        for first in bare.iter().filter_map(|t| t.chars().next()) {
            if !guarded.contains(&first) {
                guarded.push(first);
            }
        }
        (guarded.len() <= STAND_INS).then_some(Guard { bare, guarded })
    }

    /// Guards every string and key in `value`.
    pub fn protect(&self, value: &mut Value) {
        match value {
            Value::String(s) => *s = self.protect_text(s),
            Value::Array(items) => items.iter_mut().for_each(|v| self.protect(v)),
            Value::Object(fields) => {
                let old = std::mem::take(fields);
                for (key, mut v) in old {
                    self.protect(&mut v);
                    fields.insert(self.protect_text(&key), v);
                }
            }
            _ => {}
        }
    }

    fn protect_text(&self, text: &str) -> String {
        let trimmed = text.trim_end();
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            let risky = c == '|'
                || self.guarded.contains(&c)
                    && self.may_start_control(&text[at..], &trimmed[at.min(trimmed.len())..]);
            out.push(match c {
                _ if risky => self.stand_in(c),
                _ if is_stand_in(c) => char::REPLACEMENT_CHARACTER,
                _ => c,
            });
        }
        out
    }

    /// A whole bare token starts here, or one that whatever comes after the string could complete.
    fn may_start_control(&self, rest: &str, trimmed_rest: &str) -> bool {
        self.bare.iter().any(|t| {
            rest.starts_with(t.as_str())
                || t.starts_with(rest)
                || !trimmed_rest.is_empty() && t.starts_with(trimmed_rest)
        })
    }

    fn stand_in(&self, c: char) -> char {
        let i = self.guarded.iter().position(|&g| g == c).expect("a guarded character");
        char::from_u32(FIRST_STAND_IN + i as u32).expect("a noncharacter is a char")
    }

    /// The text as the request had it.
    pub fn restore(&self, text: &str) -> String {
        text.chars()
            .map(|c| match (c as u32).checked_sub(FIRST_STAND_IN) {
                Some(i) if (i as usize) < self.guarded.len() => self.guarded[i as usize],
                _ => c,
            })
            .collect()
    }
}

fn is_stand_in(c: char) -> bool {
    (c as u32).wrapping_sub(FIRST_STAND_IN) < STAND_INS as u32
}
