/*!
 * \file codec_param.h
 * \brief dmlc::Parameter for people: exact floats, and errors of one sentence that list what is allowed.
 *
 * Convention: the text given to describe() starts with the allowed values, then a colon, then what
 * the parameter does, e.g. "a finite number > 0: values from it on are sent". Errors are made of the
 * first part ("threshold must be a finite number > 0, not \"nan\""), docs of the whole.
 */
#pragma once

#include <dmlc/parameter.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "operator/contrib/codec.h"

namespace hipress {

/// A finite float parameter. dmlc's own float field reads decimal text inexactly and takes "nan".
struct Real {
  float value = 0;
  Real() = default;
  Real(float v) : value(v) {}  // NOLINT(runtime/explicit): stands for a float
  operator float() const { return value; }
};

/// Reads one word, exactly; NaN and Inf are failures.
inline std::istream& operator>>(std::istream& is, Real& real) {
  std::string text;
  is >> text;
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto result = std::from_chars(begin, end, real.value);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(real.value)) {
    is.setstate(std::ios::failbit);
  }
  return is;
}

inline std::ostream& operator<<(std::ostream& os, const Real& real) {
  return os << ExactText(real.value);
}

/// The smallest float > 0, as the lower bound of parameters that must be positive.
constexpr float kSmallestPositive = std::numeric_limits<float>::denorm_min();

}  // namespace hipress

namespace dmlc {
DMLC_DECLARE_TYPE_NAME(hipress::Real, "float");

namespace parameter {
template <>
class FieldEntry<hipress::Real> : public FieldEntryNumeric<FieldEntry<hipress::Real>, hipress::Real> {
};
}  // namespace parameter
}  // namespace dmlc

namespace hipress {

/// value * count, or the largest finite float where that overflows: a parameter for sums.
inline float ScaledForSum(float value, int count) {
  constexpr float kMax = std::numeric_limits<float>::max();
  return std::min(std::max(value * static_cast<float>(count), -kMax), kMax);
}

/// "threshold (default 0.5), scale (default 1)", or "none".
template <typename Param>
std::string ListParams() {
  std::string list;
  for (const auto& field : Param::__FIELDS__()) {
    const size_t at = field.type_info_str.find("default=");
    list += list.empty() ? "" : ", ";
    list += field.name;
    if (at != std::string::npos) list += " (" + field.type_info_str.substr(at).replace(7, 1, " ") + ")";
  }
  return list.empty() ? "none" : list;
}

/// One line per parameter: name, default, allowed values, meaning.
template <typename Param>
std::string DocumentParams() {
  std::string doc;
  for (const auto& field : Param::__FIELDS__()) {
    doc += field.name + " (" + field.type_info_str + "): " + field.description + "\n";
  }
  return doc;
}

template <typename Param>
std::vector<std::string> ParamNames() {
  std::vector<std::string> names;
  for (const auto& field : Param::__FIELDS__()) names.push_back(field.name);
  return names;
}

/*!
 * \brief Sets `param` from name=value pairs; what is not given takes its default.
 * \param whose names the owner in errors, e.g. "compression type 2bit"
 * \param unknown collects pairs that Param does not know; null: such a pair is an error
 * \throw Error in one sentence
 */
template <typename Param>
void ParseParams(const std::string& whose, const ParamList& pairs, Param* param,
                 ParamList* unknown = nullptr) {
  param->Init(ParamList());
  std::set<std::string> seen;
  for (const auto& pair : pairs) {
    if (!seen.insert(pair.first).second) {
      throw Error("parameter " + pair.first + " of " + whose + " is given twice; give it once");
    }
    try {
      if (param->UpdateAllowUnknown(ParamList{pair}).empty()) continue;
    } catch (const dmlc::Error&) {
      std::string allowed;
      for (const auto& field : Param::__FIELDS__()) {
        if (field.name == pair.first) allowed = field.description.substr(0, field.description.find(':'));
      }
      throw Error(pair.first + " of " + whose + " must be " + allowed + ", not \"" + pair.second + "\"");
    }
    if (unknown == nullptr) {
      throw Error(whose + " has no parameter \"" + pair.first +
                  "\"; its parameters: " + ListParams<Param>());
    }
    unknown->push_back(pair);
  }
}

}  // namespace hipress
