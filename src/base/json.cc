#include "base/json.h"

#include <cstdio>

namespace hipress {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c >= 32 && c < 127 && c != '"' && c != '\\') {
      out += char(c);
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      out += escape;
    }
  }
  return out + '"';
}

JsonWriter& JsonWriter::Put(const std::string& value) {
  if (!first_) text_ += ',';
  text_ += value;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Name(const char* name) {
  Put(Quoted(name));
  text_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Seconds(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6f", value);
  return Put(text);
}

JsonWriter& JsonWriter::Open(char bracket) {
  Put(std::string(1, bracket));
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

}  // namespace hipress
