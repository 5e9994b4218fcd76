#include <cstdlib>
#include <limits>

#include "common/debug_dumps.h"
#include "common/log.h"
#include "van/handshake.h"
#include "van/postoffice.h"

namespace hipress {
namespace {

/// Values by the environment's names: the given ones, otherwise the environment's own.
class Source {
 public:
  explicit Source(const JobOptions::Values& given) : given_(given) {}
  std::string operator()(const char* name) const {
    const auto it = given_.find(name);
    if (it != given_.end()) return it->second;
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

 private:
  const JobOptions::Values& given_;
};

std::string Required(const Source& text, const char* name, const char* what) {
  const std::string value = text(name);
  if (value.empty()) {
    throw Error(std::string("environment variable ") + name + " is not set; it holds " + what +
                " (tools/launch.py sets it for every process of a job)");
  }
  return value;
}

int Number(const char* name, const std::string& value, int low, int high) {
  size_t used = 0;
  long number = 0;  // NOLINT
  try {
    number = std::stol(value, &used);
  } catch (const std::exception&) {
    used = std::string::npos;
  }
  if (used != value.size() || number < low || number > high) {
    throw Error(std::string("environment variable ") + name + " is '" + value +
                "', but must be a whole number from " + std::to_string(low) + " to " +
                std::to_string(high));
  }
  return static_cast<int>(number);
}

int OptionalNumber(const Source& text, const char* name, int otherwise, int low, int high) {
  const std::string value = text(name);
  return value.empty() ? otherwise : Number(name, value, low, high);
}

/// HMAC-SHA-256 keeps what a shorter one has; a login name or "secret" can be guessed.
constexpr size_t kMinSecretBytes = 16;

/// A process with the secret can join the job, and a member can run code on its servers.
std::string Secret(const Source& text) {
  const std::string secret = text("HIPRESS_SECRET"), allow = text("HIPRESS_ALLOW_NO_SECRET");
  if (!allow.empty() && allow != "0" && allow != "1") {
    throw Error("environment variable HIPRESS_ALLOW_NO_SECRET is '" + allow +
                "', but must be 0 or 1");
  }
  if (secret.empty() && allow == "1") {
    LogWarning("no secret (HIPRESS_ALLOW_NO_SECRET=1): every user of this machine can join the job "
               "and run code as this one");
    return secret;
  }
  if (secret.empty()) {
    throw Error("environment variable HIPRESS_SECRET is not set; it holds the job's secret, at "
                "least " + std::to_string(kMinSecretBytes) + " characters, the same for every "
                "process of the job: tools/launch.py makes one, and so does `openssl rand -hex 32` "
                "(HIPRESS_ALLOW_NO_SECRET=1 does without, on a machine that nobody else uses)");
  }
  if (secret.size() < kMinSecretBytes) {
    throw Error("environment variable HIPRESS_SECRET has " + std::to_string(secret.size()) +
                " characters, but must have at least " + std::to_string(kMinSecretBytes) +
                ": `openssl rand -hex 32` makes one");
  }
  return secret;
}

}  // namespace

JobOptions JobOptions::From(const Values& given) {
  const Source text(given);
  constexpr int kMaxNodes = kFirstProvisionalRank - 1;
  JobOptions options;
  const std::string role =
      Required(text, "DMLC_ROLE", "this process's role: worker, server or scheduler");
  if (role == "worker") {
    options.role = Role::kWorker;
  } else if (role == "server") {
    options.role = Role::kServer;
  } else if (role == "scheduler") {
    options.role = Role::kScheduler;
  } else {
    throw Error("environment variable DMLC_ROLE is '" + role +
                "', but must be worker, server or scheduler");
  }
  options.root_uri = Required(text, "DMLC_PS_ROOT_URI", "the scheduler's host");
  const auto required_number = [&text](const char* name, const char* what, int low, int high) {
    return Number(name, Required(text, name, what), low, high);
  };
  const int lowest_port = given.count("DMLC_PS_ROOT_PORT") != 0 ? 0 : 1;
  options.root_port =
      required_number("DMLC_PS_ROOT_PORT", "the scheduler's port", lowest_port, 65535);
  options.num_workers = required_number("DMLC_NUM_WORKER", "the number of workers", 1, kMaxNodes);
  options.num_servers = required_number("DMLC_NUM_SERVER", "the number of servers", 0, kMaxNodes);
  if (options.role == Role::kWorker) {
    options.wanted_rank = OptionalNumber(text, "DMLC_WORKER_ID", -1, -1, options.num_workers - 1);
  } else if (options.role == Role::kServer) {
    options.wanted_rank = OptionalNumber(text, "DMLC_SERVER_ID", -1, -1, options.num_servers - 1);
  }
  options.node_host = text("DMLC_NODE_HOST");
  constexpr int kMaxNumber = std::numeric_limits<int>::max();
  options.start_timeout =
      std::chrono::seconds(OptionalNumber(text, "HIPRESS_START_TIMEOUT", 120, 1, 86400));
  options.wait_timeout =
      std::chrono::seconds(OptionalNumber(text, "HIPRESS_TIMEOUT", 600, 1, kMaxNumber));
  if (given.count("HIPRESS_TIMEOUT") == 0) options.timeout_hint = " (HIPRESS_TIMEOUT changes this)";
  options.num_threads = OptionalNumber(text, "HIPRESS_NUM_THREADS", 0, 0, 256);
  options.flight_entries = size_t(OptionalNumber(text, "HIPRESS_FLIGHT_RECORDER", 1024, 0, 1 << 20));
  options.debug_signal = debug_dumps::SignalOf(text("HIPRESS_DEBUG_SIGNAL"));
  options.timeline = text("HIPRESS_TIMELINE");
  options.ranks = text("HIPRESS_RANKS");
  options.van.names = NodeNames(options.ranks);
  options.job = text("HIPRESS_JOB");
  options.view = OptionalNumber(text, "HIPRESS_VIEW", 0, 0, kMaxNumber);
  options.van.secret = Secret(text);
  options.van.interface = text("DMLC_INTERFACE");
  const std::string tls = text("HIPRESS_TLS");
  if (!tls.empty()) options.van.tls = tls;
  CheckTlsMode(options.van.tls);
  options.van.streams = OptionalNumber(text, "HIPRESS_STREAMS", 0, 0, kMaxStreams);
  options.van.congestion_control = text("HIPRESS_CONGESTION_CONTROL");
  CheckCongestionControl(options.van.congestion_control);
  const std::string shared = text("HIPRESS_SHARED_MEMORY");
  if (!shared.empty() && shared != "auto" && shared != "off") {
    throw Error("environment variable HIPRESS_SHARED_MEMORY is '" + shared + "', but must be auto or off");
  }
  options.van.shared_memory = shared != "off";
  const auto milliseconds = [&text](const char* name, std::chrono::milliseconds otherwise) {
    return std::chrono::milliseconds(
        OptionalNumber(text, name, static_cast<int>(otherwise.count()), 1, kMaxNumber));
  };
  VanOptions& van = options.van;
  van.heartbeat_interval = milliseconds("HIPRESS_HEARTBEAT_INTERVAL_MS", van.heartbeat_interval);
  van.heartbeat_timeout = milliseconds("HIPRESS_HEARTBEAT_TIMEOUT_MS", van.heartbeat_timeout);
  if (van.heartbeat_timeout < 2 * van.heartbeat_interval) {
    throw Error("HIPRESS_HEARTBEAT_TIMEOUT_MS (" + std::to_string(van.heartbeat_timeout.count()) +
                ") must be at least twice HIPRESS_HEARTBEAT_INTERVAL_MS (" +
                std::to_string(van.heartbeat_interval.count()) + ")");
  }
  return options;
}

}  // namespace hipress
