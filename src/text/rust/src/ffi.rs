//! The C interface. Only this file is unsafe.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::template::{Chat, ChatTemplate};
use crate::tokenizer::Tokenizer;

pub struct TextModel {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
    guard: Guard,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    data: *const c_char,
    size: usize,
}

#[repr(C)]
pub struct Out {
    context: *mut c_void,
    ids: extern "C" fn(*mut c_void, *const i32, usize),
    text: extern "C" fn(*mut c_void, Str),
    error: extern "C" fn(*mut c_void, Str, Str),
}

#[repr(C)]
pub struct Vocab {
    pre: Str,
    tokens: *const Str,
    token_types: *const i32,
    n_tokens: usize,
    merges: *const Str,
    n_merges: usize,
    chat_template: Str,
    bos: Str,
    eos: Str,
}

#[repr(C)]
pub struct CChat {
    messages: Str,
    tools: Str,
    add_generation_prompt: c_int,
    now_unix_s: i64,
}

impl Str {
    /// SAFETY: `data` must point to `size` readable bytes that outlive 'a, or `size` be 0.
    unsafe fn get<'a>(self) -> Cow<'a, str> {
        String::from_utf8_lossy(array(self.data.cast(), self.size))
    }

    fn of(text: &str) -> Str {
        Str { data: text.as_ptr().cast(), size: text.len() }
    }
}

/// SAFETY: as for `slice::from_raw_parts`, except that an empty array may be null.
unsafe fn array<'a, T>(data: *const T, n: usize) -> &'a [T] {
    if n == 0 {
        &[]
    } else {
        slice::from_raw_parts(data, n)
    }
}

/// Runs `f`, reports its error or panic, and gives its value.
fn guarded<T>(out: &Out, f: impl FnOnce() -> Result<T>) -> std::result::Result<T, c_int> {
    let result = catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Error::internal("panic in the text library")));
    result.map_err(|e| {
        (out.error)(out.context, Str::of(&e.message), Str::of(&e.param));
        e.status as c_int
    })
}

#[no_mangle]
pub unsafe extern "C" fn hidane_text_new(vocab: *const Vocab, out: *const Out) -> *mut TextModel {
    let (vocab, out) = (&*vocab, &*out);
    let build = || {
        let texts = |strs: &[Str]| strs.iter().map(|s| s.get()).collect::<Vec<Cow<str>>>();
        let tokens = texts(array(vocab.tokens, vocab.n_tokens));
        let merges = texts(array(vocab.merges, vocab.n_merges));
        let tokenizer = Tokenizer::new(
            &vocab.pre.get(),
            &tokens.iter().map(Cow::as_ref).collect::<Vec<_>>(),
            array(vocab.token_types, vocab.n_tokens),
            &merges.iter().map(Cow::as_ref).collect::<Vec<_>>(),
        )?;
        let guard = Guard::new(tokenizer.control_texts())
            .ok_or_else(|| Error::invalid("control tokens start with too many characters"))?;
        let template = match vocab.chat_template.get() {
            source if source.is_empty() => None,
            source => Some(ChatTemplate::new(&source, &vocab.bos.get(), &vocab.eos.get())?),
        };
        Ok(TextModel { tokenizer, template, guard })
    };
    match guarded(out, build) {
        Ok(model) => Box::into_raw(Box::new(model)),
        Err(_) => std::ptr::null_mut(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn hidane_text_free(model: *mut TextModel) {
    if !model.is_null() {
        drop(Box::from_raw(model));
    }
}

#[no_mangle]
pub unsafe extern "C" fn hidane_text_encode(
    model: *const TextModel,
    text: Str,
    parse_special: c_int,
    out: *const Out,
) -> c_int {
    let (model, out) = (&*model, &*out);
    finish_ids(out, guarded(out, || model.tokenizer.encode(&text.get(), parse_special != 0)))
}

#[no_mangle]
pub unsafe extern "C" fn hidane_text_encode_chat(
    model: *const TextModel,
    chat: *const CChat,
    out: *const Out,
) -> c_int {
    let (model, out) = (&*model, &*out);
    let encode = || {
        let rendered = render(model, &*chat)?;
        model.tokenizer.encode_cut(&rendered, |piece| model.guard.restore(piece))
    };
    finish_ids(out, guarded(out, encode))
}

#[no_mangle]
pub unsafe extern "C" fn hidane_text_render_chat(
    model: *const TextModel,
    chat: *const CChat,
    out: *const Out,
) -> c_int {
    let (model, out) = (&*model, &*out);
    match guarded(out, || Ok(model.guard.restore(&render(model, &*chat)?))) {
        Ok(text) => {
            (out.text)(out.context, Str::of(&text));
            0
        }
        Err(status) => status,
    }
}

/// SAFETY: the strings of `chat` must be readable.
unsafe fn render(model: &TextModel, chat: &CChat) -> Result<String> {
    let template = model
        .template
        .as_ref()
        .ok_or_else(|| Error::invalid("the model has no chat template").at("messages"))?;
    let chat = Chat {
        messages: &chat.messages.get(),
        tools: &chat.tools.get(),
        add_generation_prompt: chat.add_generation_prompt != 0,
        now_unix_s: chat.now_unix_s,
    };
    template.render(&chat, &model.guard)
}

fn finish_ids(out: &Out, ids: std::result::Result<Vec<i32>, c_int>) -> c_int {
    match ids {
        Ok(ids) => {
            (out.ids)(out.context, ids.as_ptr(), ids.len());
            0
        }
        Err(status) => status,
    }
}
