//! Chat templates: Jinja as model files carry it, by `minijinja`, with bounds.

use std::io;

use minijinja::value::{Kwargs, Value};
use minijinja::{context, Environment, Error as JinjaError, ErrorKind};
use serde_json::Value as Json;

use crate::chat;
use crate::date::strftime_utc;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::json::to_spaced_json;

/// Steps of the template's machine: a base and a share for each message and tool. Real templates
/// take under 100 a message.
const FUEL_BASE: u64 = 200_000;
const FUEL_PER_ITEM: u64 = 2_000;
/// Bytes of output: a base and a factor on template plus request.
const OUTPUT_BASE: usize = 64 << 10;
const OUTPUT_FACTOR: usize = 10;
const INDENT_MAX: usize = 16;

pub struct Chat<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub add_generation_prompt: bool,
    pub now_unix_s: i64,
}

pub struct ChatTemplate {
    source: String,
    bos: String,
    eos: String,
    has_tools_branch: bool,
}

impl ChatTemplate {
    /// Fails when `source` is not a template; renders twice to see whether it knows tools.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self> {
        let mut template = ChatTemplate {
            source: source.into(),
            bos: bos.into(),
            eos: eos.into(),
            has_tools_branch: false,
        };
        template.environment(0)?;
        let messages = vec![serde_json::json!({"role": "user", "content": "x"})];
        let tool = serde_json::json!({"type": "function", "function": {
            "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}});
        let without = template.run(&messages, &[], true, 0);
        let with = template.run(&messages, &[tool], true, 0);
        template.has_tools_branch = matches!((without, with), (Ok(a), Ok(b)) if a != b);
        Ok(template)
    }

    /// The rendered chat, with `guard`'s stand-ins still in place.
    pub fn render(&self, chat: &Chat, guard: &Guard) -> Result<String> {
        let mut messages = chat::parse_array(chat.messages, "messages")?;
        let mut tools = match chat.tools {
            "" => Vec::new(),
            text => chat::parse_array(text, "tools")?,
        };
        chat::normalise_messages(&mut messages)?;
        if !self.has_tools_branch {
            chat::fold_tools(&mut messages, &tools);
            tools.clear();
        }
        messages.iter_mut().chain(&mut tools).for_each(|v| guard.protect(v));
        self.run(&messages, &tools, chat.add_generation_prompt, chat.now_unix_s)
    }

    fn run(&self, messages: &[Json], tools: &[Json], prompt: bool, now: i64) -> Result<String> {
        let mut env = self.environment(now)?;
        let items = (messages.len() + tools.len()) as u64;
        env.set_fuel(Some(FUEL_BASE + FUEL_PER_ITEM * items));
        let template = env.get_template("chat").map_err(template_error)?;
        let tools = if tools.is_empty() { Value::from(()) } else { Value::from_serialize(tools) };
        let input = self.source.len() + text_bytes(messages);
        let mut out = Bounded { text: Vec::new(), left: OUTPUT_BASE + OUTPUT_FACTOR * input };
        let context = context! {
            messages => messages, tools => tools, add_generation_prompt => prompt,
            bos_token => self.bos, eos_token => self.eos, documents => (),
        };
        let rendered = template.render_captured_to(context, &mut out).map(drop);
        match rendered {
            Ok(()) => String::from_utf8(out.text).map_err(|e| Error::internal(e.to_string())),
            Err(_) if out.left == 0 => Err(Error::limit("the chat template prints too much")),
            Err(e) => Err(template_error(e)),
        }
    }

    fn environment(&self, now: i64) -> Result<Environment<'_>> {
        let mut env = Environment::new();
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_filter("tojson", tojson);
        env.add_function("raise_exception", |message: String| -> std::result::Result<(), _> {
            Err(JinjaError::new(ErrorKind::InvalidOperation, message))
        });
        env.add_function("strftime_now", move |format: &str| strftime_utc(now, format));
        env.add_template("chat", &self.source).map_err(template_error)?;
        Ok(env)
    }
}

fn tojson(value: Value, kwargs: Kwargs) -> std::result::Result<Value, JinjaError> {
    let indent = kwargs.get::<Option<usize>>("indent")?.map(|n| n.min(INDENT_MAX));
    Ok(Value::from_safe_string(to_spaced_json(&value, indent)))
}

fn template_error(e: JinjaError) -> Error {
    match e.kind() {
        ErrorKind::OutOfFuel => Error::limit("the chat template takes too many steps"),
        _ => Error::invalid(format!("chat template: {e}")).at("messages"),
    }
}

fn text_bytes(values: &[Json]) -> usize {
    values.iter().map(|v| to_spaced_json(v, None).len()).sum()
}

/// A sink that refuses what would exceed its bound, and has nothing left from then on.
struct Bounded {
    text: Vec<u8>,
    left: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() >= self.left {
            self.left = 0;
            return Err(io::Error::other("output bound reached"));
        }
        self.left -= bytes.len();
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
