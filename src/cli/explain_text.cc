#include "cli/explain_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "cli/text_table.h"

namespace hidane::cli {
namespace {

namespace dom = simdjson::dom;

double Num(dom::element at, const char* key) {
  double value = 0;
  return at[key].get(value) == simdjson::SUCCESS ? value : 0;
}

std::string Str(dom::element at, const char* key) {
  std::string_view value;
  return at[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

bool Flag(dom::element at, const char* key) {
  bool value = false;
  return at[key].get(value) == simdjson::SUCCESS && value;
}

bool Has(dom::element at, const char* key) {
  dom::element value;
  return at[key].get(value) == simdjson::SUCCESS && !value.is_null();
}

std::vector<dom::element> List(dom::element at, const char* key) {
  dom::array items;
  if (at[key].get(items)) return {};
  return {items.begin(), items.end()};
}

/// 1234567 as 1,234,567.
std::string Count(double value) {
  std::string text = fmt::format("{:.0f}", std::abs(value));
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return std::round(value) < 0 ? "-" + text : text;
}

std::string Time(double seconds) {
  return std::abs(seconds) < 10 ? fmt::format("{:.0f} ms", seconds * 1e3)
                                : fmt::format("{:.1f} s", seconds);
}

std::string Of(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string PromptPart(dom::element prompt) {
  std::vector<Cells> parts;
  const auto add = [&](const char* name, const char* key, std::string note) {
    parts.push_back({"", name, Count(Num(prompt, key)), std::move(note)});
  };
  if (Has(prompt, "tools_tokens")) {
    add("tools", "tools_tokens", "");
    add("system text", "system_tokens", "");
  } else {
    add("tools and system text", "static_tokens", "");
  }
  add("conversation", "conversation_tokens",
      Of(static_cast<size_t>(Num(prompt, "messages")), "message") + " in the body");
  std::string table = TextTable(parts, 2);
  return fmt::format("The prompt: about {} tokens for model {}, estimated from {} bytes.\n{}",
                     Count(Num(prompt, "tokens")), Str(prompt, "model"),
                     Count(Num(prompt, "body_bytes")), table);
}

std::string CandidatesPart(const std::vector<dom::element>& candidates) {
  std::vector<Cells> lines = {
      {"", "worker", "cached", "queue", "prefill", "neighbors", "memory", "first token"}};
  for (const dom::element c : candidates) {
    lines.push_back({Flag(c, "chosen") ? "->" : "", Str(c, "worker"),
                     Count(Num(c, "cached_tokens")), Time(Num(c, "wait_s")),
                     Time(Num(c, "prefill_s")), Time(Num(c, "interference_s")),
                     Time(Num(c, "kv_wait_s")), Time(Num(c, "ttft_s"))});
  }
  return "What was compared, as predicted now:\n" + TextTable(lines, 2) +
         "cached: tokens of this prompt believed to be in the worker's KV cache. First token = "
         "queue (prompts\nsent there before) + prefill (the tokens not cached) + neighbors "
         "(answers "
         "that run beside it) + memory\n(until there is room).\n";
}

std::string Why(dom::element answer, size_t compared) {
  const std::string worker = Str(answer, "worker"), rule = Str(answer, "decision");
  if (rule == "home")
    return fmt::format(
        "{} is the one home of these tools and system text: their cache is kept "
        "there.",
        worker);
  if (rule == "balance")
    return fmt::format(
        "of the {} that were compared {} costs this request and those behind it "
        "least time.",
        Of(compared, "worker"), worker);
  if (rule == "sticky")
    return fmt::format(
        "{} has served this conversation before, and going elsewhere would not "
        "pay for computing its history again.",
        worker);
  if (rule == "placed")
    return fmt::format(
        "these tools and system text are not cached at {} yet. It is to be their home: it can "
        "begin soon, and what its memory gives up for them is missed least.",
        worker);
  if (rule == "failover")
    return fmt::format(
        "every home of these tools and system text is out. All their requests go "
        "to {} meanwhile.",
        worker);
  if (rule == "only") return fmt::format("{} is the only worker that serves the model.", worker);
  return fmt::format("policy `{}` took {} by its own rule.", Str(answer, "policy"), worker);
}

/// The best of those that lost, against the winner.
std::string Instead(const std::vector<dom::element>& candidates) {
  const dom::element* best = nullptr;
  const dom::element* chosen = nullptr;
  for (const dom::element& c : candidates) {
    if (Flag(c, "chosen"))
      chosen = &c;
    else if (best == nullptr || Num(c, "ttft_s") < Num(*best, "ttft_s"))
      best = &c;
  }
  if (best == nullptr || chosen == nullptr) return "";
  const double later = Num(*best, "ttft_s") - Num(*chosen, "ttft_s");
  const double fewer = Num(*chosen, "cached_tokens") - Num(*best, "cached_tokens");
  std::string text = fmt::format("Instead: {} would answer ", Str(*best, "worker"));
  text += std::abs(later) < 5e-4 ? "as soon"
                                 : Time(std::abs(later)) + (later < 0 ? " sooner" : " later");
  if (fewer > 0) text += fmt::format(" and compute {} tokens that are cached here", Count(fewer));
  if (fewer < 0) text += fmt::format("; it has {} more of the tokens in its cache", Count(-fewer));
  return text + ".\n";
}

std::string NotCompared(dom::element answer) {
  std::string text;
  for (const dom::element w : List(answer, "not_compared")) {
    const std::string health = Flag(w, "draining") ? "draining" : Str(w, "health");
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", Str(w, "worker"),
                        health == "up" ? "" : " (" + health + ")");
  }
  if (text.empty()) return "";
  const bool homes = Str(answer, "policy") == "prefix";
  return "Not compared: " + text + "." +
         (homes ? " A prefix is kept at its homes, where its memory is set aside.\n" : "\n");
}

std::string FlightPart(dom::element answer) {
  const std::string flight = Str(answer, "flight");
  if (flight == "follow")
    return fmt::format(
        "It would wait, at most {}, for another request that computes the same "
        "beginning right now.\n",
        Time(Num(answer, "follow_s")));
  if (flight == "lead")
    return "Requests with the same beginning would wait for its first token and reuse its work.\n";
  return "";
}

Cells DecisionLine(dom::element record) {
  dom::element decision;
  if (record["decision"].get(decision)) return {};
  const bool came = Num(record, "ttft_s") > 0;
  dom::element usage, regret;
  const bool told =
      Has(record, "regret") && !record["usage"].get(usage) && !record["regret"].get(regret);
  return {Str(record, "request_id").substr(0, 12),
          Str(record, "worker"),
          Str(decision, "rule"),
          fmt::format("{:.0f}", Num(record, "status")),
          Count(Num(decision, "prompt_tokens")),
          Count(Num(decision, "expected_cached")),
          told ? Count(Num(usage, "cached_tokens")) : "-",
          told ? Count(Num(regret, "cached_tokens")) : "-",
          Time(Num(decision, "ttft_s")),
          came ? Time(Num(record, "ttft_s")) : "-"};
}

tl::unexpected<Error> NotOurs() {
  return Fail(Code::kDataLoss, "the answer is not one of a Hidane gateway");
}

}  // namespace

Result<std::string> ExplainText(std::string_view json) {
  dom::parser parser;
  dom::element answer, prompt;
  if (parser.parse(json.data(), json.size()).get(answer) || answer["prompt"].get(prompt) ||
      !prompt.is_object())
    return NotOurs();
  const auto candidates = List(answer, "candidates");
  return fmt::format(
      "This request would go to {}. First token after about {}; {} of its tokens are cached there."
      "\n\n{}\n{}\nWhy: {} ({})\n{}{}{}",
      Str(answer, "worker"), Time(Num(answer, "ttft_s")), Count(Num(answer, "cached_expected")),
      PromptPart(prompt), CandidatesPart(candidates), Why(answer, candidates.size()),
      Str(answer, "decision"), Instead(candidates), NotCompared(answer), FlightPart(answer));
}

Result<std::string> DecisionsText(std::string_view json) {
  dom::parser parser;
  dom::element answer;
  if (parser.parse(json.data(), json.size()).get(answer) || !Has(answer, "decisions"))
    return NotOurs();
  std::vector<Cells> lines = {{"request", "worker", "why", "status", "prompt", "expected", "cached",
                               "regret", "predicted", "first token"}};
  for (const dom::element record : List(answer, "decisions")) {
    Cells line = DecisionLine(record);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (lines.size() == 1) return std::string("No request has been routed yet.\n");
  return TextTable(lines, 3) +
         "Newest first. prompt, expected and cached are tokens: of the prompt, believed to be in "
         "the worker's\ncache, and found there by the engine. regret = expected - cached; - where "
         "the engine did not say.\n";
}

std::string ErrorMessage(std::string_view json) {
  dom::parser parser;
  std::string_view message;
  if (parser.parse(json.data(), json.size())["error"]["message"].get(message))
    return std::string(json.substr(0, 200));
  return std::string(message);
}

}  // namespace hidane::cli
