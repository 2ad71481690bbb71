#pragma once
#include <gtest/gtest.h>

#include <string>

#include "prompt/body_reader.h"

namespace hidane::prompt {

/// Reads `json`; fails the test on an error.
inline Body MustRead(const std::string& json, Api api = Api::kChat, ReadOptions options = {}) {
  BodyReader reader;
  Body body;
  const Status status = reader.Read(api, json, json.size(), options, body);
  EXPECT_TRUE(status) << (status ? "" : status.error().what) << "\n" << json;
  return body;
}

/// Applies a splice as the gateway does.
inline std::string Apply(const std::string& json, const Splice& splice) {
  std::string out = json;
  return out.replace(splice.offset, splice.length, splice.text);
}

}  // namespace hidane::prompt
