#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace hidane::gateway {

/// Where the value in force came from; later ones win.
enum class Origin : uint8_t { kDefault, kFile, kEnvironment, kFlag };
std::string_view OriginName(Origin origin);

/// When a change of the file takes effect.
enum class Reload : uint8_t { kLive, kRestart };

using PropertyValue = std::variant<bool, int64_t, double, std::string>;

class PropertySet;

/// One configuration key without its type: what lists, documents and assigns it.
class PropertyBase {
 public:
  PropertyBase(PropertySet& owner, std::string_view name, Reload reload, std::string_view help);
  virtual ~PropertyBase() = default;
  PropertyBase(const PropertyBase&) = delete;
  PropertyBase& operator=(const PropertyBase&) = delete;

  std::string_view name() const { return name_; }
  std::string_view help() const { return help_; }
  Reload reload() const { return reload_; }
  Origin origin() const { return origin_; }

  /// Takes `value` if it is of the right type and in range; an error names key and value.
  Status Assign(const PropertyValue& value, Origin origin);
  /// The same for the text of a flag or an environment variable.
  Status AssignText(std::string_view text, Origin origin);

  virtual std::string TypeName() const = 0;
  virtual std::string RangeText() const = 0;    ///< empty when every value is allowed
  virtual std::string DefaultText() const = 0;  ///< as TOML
  virtual std::string ValueText() const = 0;    ///< as TOML

 protected:
  virtual Status Take(const PropertyValue& value) = 0;
  virtual Result<PropertyValue> Parse(std::string_view text) const = 0;
  Status Refuse(std::string_view value, std::string_view wanted) const;

 private:
  std::string_view name_, help_;
  Reload reload_;
  Origin origin_ = Origin::kDefault;
};

/// The keys of one table, in the order of their declaration. Neither copied nor moved, because
/// its properties are registered by address.
class PropertySet {
 public:
  PropertySet() = default;
  PropertySet(const PropertySet&) = delete;
  PropertySet& operator=(const PropertySet&) = delete;

  const std::vector<PropertyBase*>& properties() const { return properties_; }
  PropertyBase* Find(std::string_view name) const;  ///< null if there is none

 private:
  friend class PropertyBase;
  std::vector<PropertyBase*> properties_;
};

/// A number with its default and inclusive range; the unit is the end of its name.
template <class T>
class Property final : public PropertyBase {
 public:
  Property(PropertySet& owner, std::string_view name, T value, T min, T max, Reload reload,
           std::string_view help)
      : PropertyBase(owner, name, reload, help),
        value_(value),
        default_(value),
        min_(min),
        max_(max) {}
  T operator()() const { return value_; }

  std::string TypeName() const override;
  std::string RangeText() const override;
  std::string DefaultText() const override;
  std::string ValueText() const override;

 private:
  Status Take(const PropertyValue& value) override;
  Result<PropertyValue> Parse(std::string_view text) const override;

  T value_;
  T default_, min_, max_;
};
extern template class Property<int64_t>;
extern template class Property<double>;

template <>
class Property<bool> final : public PropertyBase {
 public:
  Property(PropertySet& owner, std::string_view name, bool value, Reload reload,
           std::string_view help)
      : PropertyBase(owner, name, reload, help), value_(value), default_(value) {}
  bool operator()() const { return value_; }

  std::string TypeName() const override;
  std::string RangeText() const override;
  std::string DefaultText() const override;
  std::string ValueText() const override;

 private:
  Status Take(const PropertyValue& value) override;
  Result<PropertyValue> Parse(std::string_view text) const override;

  bool value_, default_;
};

/// A string; with `choices`, one of them.
template <>
class Property<std::string> final : public PropertyBase {
 public:
  Property(PropertySet& owner, std::string_view name, std::string value, Reload reload,
           std::string_view help, std::vector<std::string_view> choices = {})
      : PropertyBase(owner, name, reload, help),
        value_(value),
        default_(std::move(value)),
        choices_(std::move(choices)) {}
  const std::string& operator()() const { return value_; }

  std::string TypeName() const override;
  std::string RangeText() const override;
  std::string DefaultText() const override;
  std::string ValueText() const override;

 private:
  Status Take(const PropertyValue& value) override;
  Result<PropertyValue> Parse(std::string_view text) const override;

  std::string value_, default_;
  std::vector<std::string_view> choices_;
};

/// Of `known`, the name that `wrong` is probably a slip of; empty if none is near.
std::string_view DidYouMean(std::string_view wrong, const std::vector<std::string_view>& known);

}  // namespace hidane::gateway
