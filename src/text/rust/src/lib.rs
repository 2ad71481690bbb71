//! Tokenizer and chat template of a language model behind one C header, `hidane_text.h`.

mod chat;
mod date;
mod error;
mod ffi;
mod guard;
mod json;
mod template;
mod tokenizer;
