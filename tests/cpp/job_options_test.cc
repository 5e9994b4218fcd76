// Options that a job receives as text: the environment's variables, and the scheduler's roster.
#include <csignal>
#include <cstdlib>
#include <map>

#include "membership/scheduler.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

TEST(Roster, MalformedTextsAreProtocolErrors) {
  const std::string good = "hipress-register-1 worker -1 10.0.0.2:4711 4 2";
  EXPECT_EQ(Registration::Parse(good).ToText(), good);
  for (const char* bad :
       {"", "hello", "hipress-register-2 worker -1 10.0.0.2:4711 4 2",
        "hipress-register-1 boss -1 10.0.0.2:4711 4 2", "hipress-register-1 worker -2 10.0.0.2:4711 4 2",
        "hipress-register-1 worker 1x 10.0.0.2:4711 4 2", "hipress-register-1 worker 1 10.0.0.2 4 2",
        "hipress-register-1 worker 1 10.0.0.2:0 4 2", "hipress-register-1 worker 1 10.0.0.2:1 4",
        "hipress-register-1 worker 1 10.0.0.2:1 4 2 0",
        "hipress-register-1 worker 99999999999999999999 10.0.0.2:1 4 2"}) {
    EXPECT_THROW(Registration::Parse(bad), ProtocolError) << bad;
  }
  EXPECT_THROW(Registration::Parse("hipress-register-1 worker 1 ::1:80 4 2"), ProtocolError);
  Roster roster;
  roster.self = Worker(1);
  roster.addresses = {{Server(0), "h:1"}, {Worker(0), "[2001:db8::1]:2"}, {Worker(1), "h:3"}};
  const std::string text = roster.ToText();
  EXPECT_EQ(Roster::Parse(text).addresses, roster.addresses);
  for (size_t keep = 0; keep + 2 < text.size(); ++keep) {
    EXPECT_THROW(Roster::Parse(text.substr(0, keep)), ProtocolError) << keep;
  }
  EXPECT_THROW(Roster::Parse("hipress-roster-1 worker 0 2\nworker 0 h:1\nworker 0 h:2\n"), ProtocolError);
  EXPECT_THROW(Roster::Parse("hipress-roster-1 worker 7 1\nworker 0 h:1\n"), ProtocolError);
}

constexpr const char* kSecret = "0123456789abcdef";

TEST(JobOptions, RanksAndTimeoutOfAFrontEndShapeSentences) {
  JobOptions::Values values = {
      {"DMLC_ROLE", "worker"}, {"DMLC_PS_ROOT_URI", "10.0.0.1"}, {"DMLC_PS_ROOT_PORT", "9091"},
      {"DMLC_NUM_WORKER", "2"}, {"DMLC_NUM_SERVER", "1"}, {"HIPRESS_SECRET", kSecret}};
  const JobOptions plain = JobOptions::From(values);
  EXPECT_EQ(plain.van.names(Worker(1)), "worker 1");
  EXPECT_EQ(plain.van.names(Scheduler()), "the scheduler");
  EXPECT_EQ(plain.timeout_hint, " (HIPRESS_TIMEOUT changes this)");
  values.insert({{"HIPRESS_RANKS", "4,7"}, {"HIPRESS_TIMEOUT", "9"}});
  const JobOptions options = JobOptions::From(values);
  EXPECT_EQ(options.van.names(Worker(1)), "rank 7");
  EXPECT_EQ(options.van.names(Scheduler()), "rank 4");
  EXPECT_EQ(options.van.names(Server(0)), "server 0");
  EXPECT_EQ(options.timeout_hint, "");
}

TEST(JobOptions, TheEnvironmentIsCheckedVariableByVariable) {
  const std::map<std::string, std::string> good = {
      {"DMLC_ROLE", "worker"},     {"DMLC_PS_ROOT_URI", "10.0.0.1"}, {"DMLC_PS_ROOT_PORT", "9091"},
      {"DMLC_NUM_WORKER", "4"},    {"DMLC_NUM_SERVER", "2"},         {"DMLC_WORKER_ID", "3"},
      {"HIPRESS_SECRET", kSecret},    {"DMLC_INTERFACE", "eth0"},       {"HIPRESS_TLS", "on"},
      {"DMLC_NODE_HOST", "10.0.0.7"}, {"HIPRESS_START_TIMEOUT", "7"},
      {"HIPRESS_TIMEOUT", "9"},       {"HIPRESS_NUM_THREADS", "3"}};
  const auto error_with = [&](const std::string& name, const char* value) {
    for (const auto& [key, text] : good) setenv(key.c_str(), text.c_str(), 1);
    if (value == nullptr) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value, 1);
    }
    const std::string error = ErrorOf([] { JobOptions::From({}); });
    unsetenv(name.c_str());
    return error;
  };
  ASSERT_EQ(error_with("UNRELATED", "x"), "");
  const JobOptions options = JobOptions::From({});
  EXPECT_EQ(options.role, Role::kWorker);
  EXPECT_EQ(options.root_uri, "10.0.0.1");
  EXPECT_EQ(options.root_port, 9091);
  EXPECT_EQ(options.flight_entries, 1024u);
  EXPECT_EQ(options.debug_signal, SIGUSR1);
  EXPECT_EQ(options.num_workers, 4);
  EXPECT_EQ(options.num_servers, 2);
  EXPECT_EQ(options.wanted_rank, 3);
  EXPECT_EQ(options.van.secret, kSecret);
  EXPECT_EQ(options.van.interface, "eth0");
  EXPECT_EQ(options.van.tls, "on");
  EXPECT_EQ(options.node_host, "10.0.0.7");
  EXPECT_EQ(options.start_timeout, seconds(7));
  EXPECT_EQ(options.wait_timeout, seconds(9));
  EXPECT_EQ(options.num_threads, 3);
  struct Case {
    const char* name;
    const char* value;
    const char* error;
  };
  for (const Case& c : std::vector<Case>{
           {"DMLC_ROLE", nullptr, "environment variable DMLC_ROLE is not set"},
           {"DMLC_ROLE", "boss", "DMLC_ROLE is 'boss', but must be worker, server or scheduler"},
           {"DMLC_PS_ROOT_URI", nullptr, "DMLC_PS_ROOT_URI is not set"},
           {"DMLC_PS_ROOT_PORT", "0", "DMLC_PS_ROOT_PORT is '0', but must be a whole number from 1 to 65535"},
           {"DMLC_PS_ROOT_PORT", "90x", "DMLC_PS_ROOT_PORT is '90x'"},
           {"DMLC_NUM_WORKER", nullptr, "DMLC_NUM_WORKER is not set"},
           {"DMLC_NUM_WORKER", "-1", "DMLC_NUM_WORKER is '-1', but must be a whole number from 1 to"},
           {"DMLC_NUM_SERVER", "many", "DMLC_NUM_SERVER is 'many'"},
           {"DMLC_WORKER_ID", "4", "DMLC_WORKER_ID is '4', but must be a whole number from -1 to 3"},
           {"HIPRESS_SECRET", nullptr, "environment variable HIPRESS_SECRET is not set; it holds the job's"},
           {"HIPRESS_SECRET", "", "environment variable HIPRESS_SECRET is not set; it holds the job's"},
           {"HIPRESS_SECRET", "0123456789abcde", "HIPRESS_SECRET has 15 characters, but must have at least 16"},
           {"HIPRESS_ALLOW_NO_SECRET", "yes", "HIPRESS_ALLOW_NO_SECRET is 'yes', but must be 0 or 1"},
           {"HIPRESS_TLS", "yes", "HIPRESS_TLS is 'yes', but must be auto, on or off"},
           {"HIPRESS_START_TIMEOUT", "0", "HIPRESS_START_TIMEOUT is '0'"},
           {"HIPRESS_TIMEOUT", "60s", "HIPRESS_TIMEOUT is '60s', but must be a whole number from 1 to"},
           {"HIPRESS_TIMEOUT", "0", "HIPRESS_TIMEOUT is '0'"},
           {"HIPRESS_NUM_THREADS", "four", "HIPRESS_NUM_THREADS is 'four'"},
           {"HIPRESS_FLIGHT_RECORDER", "all", "HIPRESS_FLIGHT_RECORDER is 'all'"},
           {"HIPRESS_VIEW", "-1", "HIPRESS_VIEW is '-1'"},
           {"HIPRESS_DEBUG_SIGNAL", "SIGKILL", "HIPRESS_DEBUG_SIGNAL is 'SIGKILL', but must be USR1,"},
           {"HIPRESS_HEARTBEAT_INTERVAL_MS", "6001", "must be at least twice"}}) {
    EXPECT_HAS(error_with(c.name, c.value), c.error);
  }
  for (const auto& [text, number] : std::vector<std::pair<const char*, int>>{
           {"none", 0}, {"0", 0}, {"USR2", SIGUSR2}, {"SIGUSR2", SIGUSR2}, {"12", SIGUSR2}}) {
    EXPECT_EQ(JobOptions::From({{"HIPRESS_DEBUG_SIGNAL", text},
                                {"DMLC_ROLE", "scheduler"},
                                {"DMLC_PS_ROOT_URI", "127.0.0.1"},
                                {"DMLC_PS_ROOT_PORT", "0"},
                                {"DMLC_NUM_WORKER", "1"},
                                {"DMLC_NUM_SERVER", "0"},
                                {"HIPRESS_SECRET", kSecret}}).debug_signal,
              number);
  }
  // Only an explicit setting disables the secret, and a short secret does not.
  setenv("HIPRESS_ALLOW_NO_SECRET", "1", 1);
  EXPECT_EQ(error_with("HIPRESS_SECRET", nullptr), "");
  EXPECT_HAS(error_with("HIPRESS_SECRET", "short"), "has 5 characters");
  setenv("HIPRESS_ALLOW_NO_SECRET", "0", 1);
  EXPECT_HAS(error_with("HIPRESS_SECRET", nullptr), "HIPRESS_SECRET is not set");
  unsetenv("HIPRESS_ALLOW_NO_SECRET");
  for (const auto& entry : good) unsetenv(entry.first.c_str());
}

}  // namespace
}  // namespace hipress::testing
