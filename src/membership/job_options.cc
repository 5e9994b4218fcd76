#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/debug_dumps.h"
#include "base/log.h"
#include "transport/handshake.h"
#include "membership/postoffice.h"

namespace hipress {
namespace {

/// Settings by their names in the environment: the given ones, otherwise the environment's own.
class Settings {
 public:
  explicit Settings(const JobOptions::Values& given) : given_(given) {}

  std::string Text(const std::string& name, const std::string& otherwise = "") const {
    const auto it = given_.find(name);
    const char* value = it != given_.end() ? it->second.c_str() : std::getenv(name.c_str());
    return value == nullptr || *value == '\0' ? otherwise : value;
  }
  std::string Required(const std::string& name, const std::string& what) const {
    const std::string value = Text(name);
    if (!value.empty()) return value;
    throw Error("environment variable " + name + " is not set; it holds " + what +
                " (tools/launch.py sets it for every process of a job)");
  }
  /// \param requirement as in "0 or 1"
  [[noreturn]] void Refuse(const std::string& name, const std::string& requirement) const {
    throw Error("environment variable " + name + " is '" + Text(name) + "', but must be " + requirement);
  }
  int Number(const std::string& name, int otherwise, int low, int high) const {
    const std::string value = Text(name);
    if (value.empty()) return otherwise;
    size_t used = 0;
    long number = 0;  // NOLINT
    try {
      number = std::stol(value, &used);
    } catch (const std::exception&) {
      used = std::string::npos;
    }
    if (used != value.size() || number < low || number > high) {
      Refuse(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return static_cast<int>(number);
  }
  int RequiredNumber(const std::string& name, const std::string& what, int low, int high) const {
    Required(name, what);
    return Number(name, 0, low, high);
  }

 private:
  const JobOptions::Values& given_;
};

/// HMAC-SHA-256 keeps what a shorter one has; a login name or "secret" can be guessed.
constexpr size_t kMinSecretBytes = 16;

/// A process with the secret can join the job, and a member can run code on its servers.
std::string Secret(const Settings& settings) {
  const std::string secret = settings.Text("HIPRESS_SECRET");
  const std::string allow = settings.Text("HIPRESS_ALLOW_NO_SECRET", "0");
  if (allow != "0" && allow != "1") settings.Refuse("HIPRESS_ALLOW_NO_SECRET", "0 or 1");
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
  const Settings settings(given);
  constexpr int kMaxNodes = kFirstProvisionalRank - 1;
  constexpr int kMaxNumber = std::numeric_limits<int>::max();
  JobOptions options;
  const std::string role = settings.Required("DMLC_ROLE", "this process's role: worker, server or scheduler");
  const auto roles = {Role::kScheduler, Role::kServer, Role::kWorker};
  const auto named = std::find_if(roles.begin(), roles.end(), [&](Role r) { return role == NameOf(r); });
  if (named == roles.end()) settings.Refuse("DMLC_ROLE", "worker, server or scheduler");
  options.role = *named;
  options.root_uri = settings.Required("DMLC_PS_ROOT_URI", "the scheduler's host");
  const int lowest_port = given.count("DMLC_PS_ROOT_PORT") != 0 ? 0 : 1;
  options.root_port =
      settings.RequiredNumber("DMLC_PS_ROOT_PORT", "the scheduler's port", lowest_port, 65535);
  options.num_workers = settings.RequiredNumber("DMLC_NUM_WORKER", "the number of workers", 1, kMaxNodes);
  options.num_servers = settings.RequiredNumber("DMLC_NUM_SERVER", "the number of servers", 0, kMaxNodes);
  if (options.role == Role::kWorker) {
    options.wanted_rank = settings.Number("DMLC_WORKER_ID", -1, -1, options.num_workers - 1);
  } else if (options.role == Role::kServer) {
    options.wanted_rank = settings.Number("DMLC_SERVER_ID", -1, -1, options.num_servers - 1);
  }
  options.node_host = settings.Text("DMLC_NODE_HOST");
  options.start_timeout = std::chrono::seconds(settings.Number("HIPRESS_START_TIMEOUT", 120, 1, 86400));
  options.wait_timeout = std::chrono::seconds(settings.Number("HIPRESS_TIMEOUT", 600, 1, kMaxNumber));
  if (given.count("HIPRESS_TIMEOUT") == 0) options.timeout_hint = " (HIPRESS_TIMEOUT changes this)";
  options.num_threads = settings.Number("HIPRESS_NUM_THREADS", 0, 0, 256);
  options.flight_entries = size_t(settings.Number("HIPRESS_FLIGHT_RECORDER", 1024, 0, 1 << 20));
  options.debug_signal = debug_dumps::SignalOf(settings.Text("HIPRESS_DEBUG_SIGNAL"));
  options.timeline = settings.Text("HIPRESS_TIMELINE");
  options.ranks = settings.Text("HIPRESS_RANKS");
  options.job = settings.Text("HIPRESS_JOB");
  options.view = settings.Number("HIPRESS_VIEW", 0, 0, kMaxNumber);

  VanOptions& van = options.van;
  van.names = NodeNames(options.ranks);
  van.secret = Secret(settings);
  van.interface = settings.Text("DMLC_INTERFACE");
  van.tls = settings.Text("HIPRESS_TLS", van.tls);
  CheckTlsMode(van.tls);
  van.streams = settings.Number("HIPRESS_STREAMS", 0, 0, kMaxStreams);
  van.congestion_control = settings.Text("HIPRESS_CONGESTION_CONTROL");
  CheckCongestionControl(van.congestion_control);
  const std::string shared = settings.Text("HIPRESS_SHARED_MEMORY", "auto");
  if (shared != "auto" && shared != "off") settings.Refuse("HIPRESS_SHARED_MEMORY", "auto or off");
  van.shared_memory = shared == "auto";
  const auto milliseconds = [&](const char* name, std::chrono::milliseconds otherwise) {
    return std::chrono::milliseconds(settings.Number(name, int(otherwise.count()), 1, kMaxNumber));
  };
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
