/*!
 * \file json.h
 * \brief Writes JSON texts.
 */
#pragma once

#include <cstdint>
#include <string>

namespace hipress {

/// A JSON string in which bytes other than printable ASCII are escaped as if they were Latin-1.
std::string Quoted(const std::string& text);

/// Builds a JSON text from its parts in their order, and sets the commas.
class JsonWriter {
 public:
  JsonWriter& Object() { return Open('{'); }
  JsonWriter& Array() { return Open('['); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& EndArray() { return Close(']'); }
  /// The name of the value that follows.
  JsonWriter& Name(const char* name);
  JsonWriter& Text(const std::string& value) { return Put(Quoted(value)); }
  JsonWriter& Number(int64_t value) { return Put(std::to_string(value)); }
  JsonWriter& Unsigned(uint64_t value) { return Put(std::to_string(value)); }
  /// A time, with microseconds.
  JsonWriter& Seconds(double value);
  JsonWriter& Bool(bool value) { return Put(value ? "true" : "false"); }
  /// A value that is JSON already.
  JsonWriter& Raw(const std::string& json) { return Put(json); }
  const std::string& text() const { return text_; }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  JsonWriter& Put(const std::string& value);

  std::string text_;
  bool first_ = true;  ///< no comma before what follows
};

}  // namespace hipress
