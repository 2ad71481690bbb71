#pragma once
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "prompt/identity.h"

namespace hidane::sim {

/// One request as a client sends it. Prompts have no text here: a chain of hashes with their
/// extents in tokens is all that router and engine look at.
struct Request {
  uint64_t id = 0;      ///< given by the simulation, in the order of sending
  TimePoint arrival{};  ///< when the client means to send it; TTFT counts from here
  Duration waited{};    ///< a retry: spent on the attempts before, part of TTFT
  Duration patience{};  ///< the client gives up without a first byte after so long; 0: never
  uint32_t tenant = 0;
  uint64_t conversation = 0;   ///< 0: a single request
  uint32_t attempt = 0;        ///< > 0: the client's retry of a request that it gave up
  bool counted = true;         ///< false: warm-up, in no figure
  bool batch = false;          ///< has no deadline; yields first
  uint32_t output_tokens = 1;  ///< >= 1
  /// In tokens: `ends` count tokens and `tokens` = ends.back(). Marks as in real prompts.
  prompt::Identity prompt;
  /// The answer's blocks, continuing prompt.chain and prompt.ends, where a later prompt goes on
  /// with them: an engine that has computed them has them cached. Empty: nobody asks again.
  std::vector<uint64_t> answer_chain;
  std::vector<uint32_t> answer_ends;  ///< tokens from the prompt's start
};

}  // namespace hidane::sim
