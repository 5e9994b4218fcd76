#include <cstdlib>
#include <limits>

#include "common/log.h"
#include "van/handshake.h"
#include "van/postoffice.h"

namespace hipress {
namespace {

std::string Text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Required(const char* name, const char* what) {
  const std::string value = Text(name);
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

int OptionalNumber(const char* name, int otherwise, int low, int high) {
  const std::string value = Text(name);
  return value.empty() ? otherwise : Number(name, value, low, high);
}

/// HMAC-SHA-256 keeps what a shorter one has; a login name or "secret" can be guessed.
constexpr size_t kMinSecretBytes = 16;

/// Who knows the secret can join the job, and who can join can run code on its servers.
std::string Secret() {
  const std::string secret = Text("HIPRESS_SECRET"), allow = Text("HIPRESS_ALLOW_NO_SECRET");
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

JobOptions JobOptions::FromEnvironment() {
  constexpr int kMaxNodes = kFirstProvisionalRank - 1;
  JobOptions options;
  const std::string role = Required("DMLC_ROLE", "this process's role: worker, server or scheduler");
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
  options.root_uri = Required("DMLC_PS_ROOT_URI", "the scheduler's host");
  options.root_port = Number("DMLC_PS_ROOT_PORT", Required("DMLC_PS_ROOT_PORT", "the scheduler's port"),
                             1, 65535);
  options.num_workers = Number("DMLC_NUM_WORKER", Required("DMLC_NUM_WORKER", "the number of workers"),
                               1, kMaxNodes);
  options.num_servers = Number("DMLC_NUM_SERVER", Required("DMLC_NUM_SERVER", "the number of servers"),
                               0, kMaxNodes);
  if (options.role == Role::kWorker) {
    options.wanted_rank = OptionalNumber("DMLC_WORKER_ID", -1, -1, options.num_workers - 1);
  } else if (options.role == Role::kServer) {
    options.wanted_rank = OptionalNumber("DMLC_SERVER_ID", -1, -1, options.num_servers - 1);
  }
  options.node_host = Text("DMLC_NODE_HOST");
  options.start_timeout = std::chrono::seconds(OptionalNumber("HIPRESS_START_TIMEOUT", 120, 1, 86400));
  options.wait_timeout =
      std::chrono::seconds(OptionalNumber("HIPRESS_TIMEOUT", 600, 1, std::numeric_limits<int>::max()));
  options.num_threads = OptionalNumber("HIPRESS_NUM_THREADS", 0, 0, 256);
  options.van.secret = Secret();
  options.van.interface = Text("DMLC_INTERFACE");
  const std::string tls = Text("HIPRESS_TLS");
  if (!tls.empty()) options.van.tls = tls;
  CheckTlsMode(options.van.tls);
  const std::string shared = Text("HIPRESS_SHARED_MEMORY");
  if (!shared.empty() && shared != "auto" && shared != "off") {
    throw Error("environment variable HIPRESS_SHARED_MEMORY is '" + shared + "', but must be auto or off");
  }
  options.van.shared_memory = shared != "off";
  const auto milliseconds = [](const char* name, std::chrono::milliseconds otherwise) {
    return std::chrono::milliseconds(OptionalNumber(name, static_cast<int>(otherwise.count()), 1,
                                                    std::numeric_limits<int>::max()));
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
