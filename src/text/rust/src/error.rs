//! The one error type of the library, and its place in the C interface.

/// What `hidane_text_status` says, without OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    InvalidArgument = 1,
    Limit = 2,
    Internal = 3,
}

#[derive(Debug)]
pub struct Error {
    pub status: Status,
    /// For people; names the offending value.
    pub message: String,
    /// The request's field at fault, or empty.
    pub param: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Error { status: Status::InvalidArgument, message: message.into(), param: String::new() }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Error { status: Status::Internal, message: message.into(), param: String::new() }
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Error { status: Status::Limit, message: message.into(), param: String::new() }
    }

    pub fn at(mut self, param: impl Into<String>) -> Self {
        self.param = param.into();
        self
    }
}
