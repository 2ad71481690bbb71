//! Byte-level BPE from what a GGUF file says, by the `tokenizers` crate.
//!
//! Control and user-defined tokens are cut out first by an automaton of our own, so that one
//! tokenizer serves both ways of reading control-token text: as the token, or as plain text.

use aho_corasick::{AhoCorasick, MatchKind};
use fancy_regex::Regex;
use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::Model;

use crate::error::{Error, Result};

const CONTROL: i32 = 3; // GGUF token types
const USER_DEFINED: i32 = 4;

const GPT_2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA_BPE: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Finds whole tokens by their text: leftmost, then longest.
struct Cutter {
    automaton: AhoCorasick,
    ids: Vec<i32>,
}

impl Cutter {
    fn new(tokens: Vec<(&str, i32)>) -> Result<Self> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|t| t.0))
            .map_err(|e| Error::invalid(format!("control tokens: {e}")))?;
        Ok(Cutter { automaton, ids: tokens.into_iter().map(|t| t.1).collect() })
    }

    /// Calls `piece` with the text between tokens (never empty) and the tokens, in order.
    fn cut<'t>(&self, text: &'t str, mut piece: impl FnMut(Piece<'t>) -> Result<()>) -> Result<()> {
        let mut from = 0;
        for m in self.automaton.find_iter(text) {
            if from < m.start() {
                piece(Piece::Text(&text[from..m.start()]))?;
            }
            piece(Piece::Token(self.ids[m.pattern().as_usize()]))?;
            from = m.end();
        }
        if from < text.len() {
            piece(Piece::Text(&text[from..]))?;
        }
        Ok(())
    }
}

enum Piece<'t> {
    Text(&'t str),
    Token(i32),
}

pub struct Tokenizer {
    bpe: BPE,
    splitter: Splitter,
    letters: [char; 256], // byte -> its letter in the byte-level alphabet
    with_control: Cutter, // control and user-defined tokens
    plain: Cutter,        // user-defined tokens alone
    control_texts: Vec<String>,
}

impl Tokenizer {
    /// `tokens[i]` is the text of id i and `types[i]` its GGUF type; `merges` are best first.
    pub fn new(pre: &str, tokens: &[&str], types: &[i32], merges: &[&str]) -> Result<Self> {
        let of_type = |wanted: &[i32]| -> Vec<(&str, i32)> {
            (0..tokens.len())
                .filter(|&i| wanted.contains(&types[i]) && !tokens[i].is_empty())
                .map(|i| (tokens[i], i as i32))
                .collect()
        };
        let vocab: Vocab =
            tokens.iter().enumerate().map(|(i, t)| (t.to_string(), i as u32)).collect();
        let merges = merges.iter().map(|m| split_merge(m)).collect::<Result<Vec<_>>>()?;
        let bpe = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .ignore_merges(pre == "llama-bpe")
            .build()
            .map_err(|e| Error::invalid(format!("vocabulary and merges: {e}")))?;
        Ok(Tokenizer {
            bpe,
            splitter: Splitter::new(pre)?,
            letters: byte_letters(),
            with_control: Cutter::new(of_type(&[CONTROL, USER_DEFINED]))?,
            plain: Cutter::new(of_type(&[USER_DEFINED]))?,
            control_texts: of_type(&[CONTROL]).into_iter().map(|t| t.0.to_string()).collect(),
        })
    }

    /// Texts of the control tokens, never empty.
    pub fn control_texts(&self) -> &[String] {
        &self.control_texts
    }

    /// Tokens of `text`; control-token text is plain text unless `parse_special`.
    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<i32>> {
        if parse_special {
            self.encode_cut(text, str::to_string)
        } else {
            let mut ids = Vec::with_capacity(text.len() / 3);
            self.encode_plain(text, &mut ids)?;
            Ok(ids)
        }
    }

    /// Recognises control tokens in `text`, then passes what lies between them through `restore`
    /// and reads the result as plain text.
    pub fn encode_cut(&self, text: &str, restore: impl Fn(&str) -> String) -> Result<Vec<i32>> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.with_control.cut(text, |piece| match piece {
            Piece::Token(id) => {
                ids.push(id);
                Ok(())
            }
            Piece::Text(t) => self.encode_plain(&restore(t), &mut ids),
        })?;
        Ok(ids)
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<i32>) -> Result<()> {
        self.plain.cut(text, |piece| {
            match piece {
                Piece::Token(id) => ids.push(id),
                Piece::Text(t) => self.encode_words(t, ids)?,
            }
            Ok(())
        })
    }

    fn encode_words(&self, text: &str, ids: &mut Vec<i32>) -> Result<()> {
        let mut letters = String::new();
        self.splitter.split(text, |word| {
            letters.clear();
            letters.extend(word.bytes().map(|b| self.letters[b as usize]));
            let tokens = self.bpe.tokenize(&letters);
            let tokens = tokens.map_err(|e| Error::internal(format!("tokenizer: {e}")))?;
            ids.extend(tokens.iter().map(|t| t.id as i32));
            Ok(())
        })
    }
}

/// Cuts text into the words within which BPE merges.
struct Splitter {
    regex: Regex,
    lone_digits: bool, // every numeric character is a word, and ends the text before it
}

impl Splitter {
    fn new(name: &str) -> Result<Self> {
        let (regex, lone_digits) = match name {
            "gpt-2" => (GPT_2, false),
            "smollm" => (GPT_2, true),
            "llama-bpe" => (LLAMA_BPE, false),
            "qwen2" => (QWEN2, false),
            _ => {
                return Err(Error::invalid(format!(
                    "unknown pre-tokenizer {name:?} (known: smollm, gpt-2, llama-bpe, qwen2)"
                )))
            }
        };
        let regex = Regex::new(regex).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Splitter { regex, lone_digits })
    }

    fn split<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str) -> Result<()>) -> Result<()> {
        if !self.lone_digits {
            return self.split_by_regex(text, &mut word);
        }
        let mut from = 0;
        for (at, digit) in text.match_indices(char::is_numeric) {
            self.split_by_regex(&text[from..at], &mut word)?;
            word(digit)?;
            from = at + digit.len();
        }
        self.split_by_regex(&text[from..], &mut word)
    }

    /// Every pattern matches everything; what the engine gives up on stays one word.
    fn split_by_regex<'t>(
        &self,
        text: &'t str,
        word: &mut impl FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        let mut from = 0;
        for found in self.regex.find_iter(text).map_while(std::result::Result::ok) {
            word(found.as_str())?;
            from = found.end();
        }
        if from < text.len() {
            word(&text[from..])?;
        }
        Ok(())
    }
}

/// The byte-level alphabet of text/byte_alphabet.h.
fn byte_letters() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| {
        let c = byte as u8 as char;
        if matches!(c, '!'..='~' | '\u{A1}'..='\u{AC}' | '\u{AE}'..='\u{FF}') {
            return c;
        }
        next += 1;
        char::from_u32(next - 1).expect("below the surrogates")
    })
}

/// "left right" at the first space that is not the first character.
fn split_merge(merge: &str) -> Result<(String, String)> {
    let bad = || Error::invalid(format!("merge {merge:?} is not two tokens"));
    let first = merge.chars().next().ok_or_else(bad)?.len_utf8();
    let space = first + merge[first..].find(' ').ok_or_else(bad)?;
    Ok((merge[..space].to_string(), merge[space + 1..].to_string()))
}
