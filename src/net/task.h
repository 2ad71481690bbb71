#pragma once
#include <boost/asio/awaitable.hpp>

namespace hidane::net {

/// A coroutine that runs on one Loop's thread. Parameters by value; name an aggregate before it is
/// passed in a `co_await` expression (g++ 12 destroys such temporaries twice). `co_await` is a
/// statement or an initialiser: `while (co_await F())` is compiled to a trap there.
template <class T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace hidane::net
