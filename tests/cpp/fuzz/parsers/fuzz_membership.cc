// Texts of nodes that join: registrations and rosters.
#include "fuzz.h"
#include "membership/scheduler.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool roster = input.Take<uint8_t>() % 2;
  const std::string text = input.Text();
  try {
    // What is accepted reads back as the same.
    if (roster) {
      const Roster found = Roster::Parse(text);
      if (Roster::Parse(found.ToText()).addresses != found.addresses) std::abort();
    } else {
      const Registration found = Registration::Parse(text);
      if (Registration::Parse(found.ToText()).address != found.address) std::abort();
    }
  } catch (const ProtocolError&) {
  }
  return 0;
}

std::vector<std::string> Seeds() {
  Registration registration;
  registration.wanted_rank = 3;
  registration.address = "127.0.0.1:9000";
  registration.num_workers = 4;
  registration.num_servers = 2;
  Roster roster;
  roster.self = Worker(1);
  roster.addresses = {{Worker(0), "10.0.0.1:1"}, {Worker(1), "10.0.0.2:65535"},
                      {Server(0), "10.0.0.3:7"}};
  return {BytesOf(uint8_t(0)) + registration.ToText(), BytesOf(uint8_t(1)) + roster.ToText()};
}
