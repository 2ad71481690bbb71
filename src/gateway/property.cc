#include "gateway/property.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json_out.h"

namespace hidane::gateway {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);  // a JSON string is a TOML basic string
  return out;
}

std::string Text(int64_t v) {
  return fmt::format("{}", v);
}
std::string Text(double v) {
  std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string Text(const PropertyValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value)) return Text(*i);
  if (const auto* d = std::get_if<double>(&value)) return Text(*d);
  return Quoted(std::get<std::string>(value));
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

template <class T>
Result<PropertyValue> ParseNumber(std::string_view text) {
  T v{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    return PropertyValue(std::string(text));  // Take() refuses it and names it
  return PropertyValue(v);
}

}  // namespace

std::string_view OriginName(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kFile:
      return "file";
    case Origin::kEnvironment:
      return "environment";
    case Origin::kFlag:
      return "flag";
  }
  return "";
}

PropertyBase::PropertyBase(PropertySet& owner, std::string_view name, Reload reload,
                           std::string_view help)
    : name_(name), help_(help), reload_(reload) {
  owner.properties_.push_back(this);
}

Status PropertyBase::Assign(const PropertyValue& value, Origin origin) {
  HIDANE_CHECK_OK(Take(value));
  origin_ = origin;
  return {};
}

Status PropertyBase::AssignText(std::string_view text, Origin origin) {
  HIDANE_TRY(const PropertyValue value, Parse(text));
  return Assign(value, origin);
}

Status PropertyBase::Refuse(std::string_view value, std::string_view wanted) const {
  return Fail(Code::kInvalidArgument, fmt::format("{} = {}: must be {}", name_, value, wanted),
              std::string(name_));
}

PropertyBase* PropertySet::Find(std::string_view name) const {
  const auto it = std::find_if(properties_.begin(), properties_.end(),
                               [&](const PropertyBase* p) { return p->name() == name; });
  return it == properties_.end() ? nullptr : *it;
}

template <class T>
std::string Property<T>::TypeName() const {
  return std::is_same_v<T, double> ? "number" : "integer";
}
template <class T>
std::string Property<T>::RangeText() const {
  return fmt::format("{} .. {}", Text(min_), Text(max_));
}
template <class T>
std::string Property<T>::DefaultText() const {
  return Text(default_);
}
template <class T>
std::string Property<T>::ValueText() const {
  return Text(value_);
}
template <class T>
Status Property<T>::Take(const PropertyValue& value) {
  T v{};
  if (const auto* exact = std::get_if<T>(&value)) {
    v = *exact;
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    v = static_cast<T>(*whole);
  } else {
    return Refuse(Text(value), TypeName());
  }
  if (!(v >= min_ && v <= max_)) return Refuse(Text(value), RangeText());
  value_ = v;
  return {};
}
template <class T>
Result<PropertyValue> Property<T>::Parse(std::string_view text) const {
  return ParseNumber<T>(text);
}
template class Property<int64_t>;
template class Property<double>;

std::string Property<bool>::TypeName() const {
  return "boolean";
}
std::string Property<bool>::RangeText() const {
  return {};
}
std::string Property<bool>::DefaultText() const {
  return default_ ? "true" : "false";
}
std::string Property<bool>::ValueText() const {
  return value_ ? "true" : "false";
}
Status Property<bool>::Take(const PropertyValue& value) {
  const auto* v = std::get_if<bool>(&value);
  if (v == nullptr) return Refuse(Text(value), "true or false");
  value_ = *v;
  return {};
}
Result<PropertyValue> Property<bool>::Parse(std::string_view text) const {
  if (text == "true" || text == "1") return PropertyValue(true);
  if (text == "false" || text == "0") return PropertyValue(false);
  return PropertyValue(std::string(text));
}

std::string Property<std::string>::TypeName() const {
  return "string";
}
std::string Property<std::string>::RangeText() const {
  return fmt::format("{}", fmt::join(choices_, ", "));
}
std::string Property<std::string>::DefaultText() const {
  return Quoted(default_);
}
std::string Property<std::string>::ValueText() const {
  return Quoted(value_);
}
Status Property<std::string>::Take(const PropertyValue& value) {
  const auto* v = std::get_if<std::string>(&value);
  if (v == nullptr) return Refuse(Text(value), "a string");
  if (!choices_.empty() && std::find(choices_.begin(), choices_.end(), *v) == choices_.end())
    return Refuse(Quoted(*v), "one of " + RangeText());
  value_ = *v;
  return {};
}
Result<PropertyValue> Property<std::string>::Parse(std::string_view text) const {
  return PropertyValue(std::string(text));
}

std::string_view DidYouMean(std::string_view wrong, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t least = std::max<size_t>(2, wrong.size() / 3) + 1;
  for (const std::string_view name : known) {
    const size_t distance = EditDistance(wrong, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

}  // namespace hidane::gateway
