#!/usr/bin/env bash
# One step of the set-up, as the Makefile calls it: tools/setup.sh
# system|demo|python|tensorflow|ray|launchers|image|clang|native [TARGET...]|wheel.
# Prints a line per step. Everything else goes to build/logs/STEP.log; its end is shown if it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3.11}
JOBS=${JOBS:-$(nproc)}
ISAS=${ISAS:-native}
WHEELS=${WHEELS:-dist}
mkdir -p build/stamps build/logs

fail() { printf 'hipress: %s\n' "$*" >&2; exit 1; }

# step NAME MESSAGE COMMAND...: runs the command quietly, shows how long it takes, and prints
# nothing about a command that had nothing to do.
step() {
  local log=build/logs/$1.log message="hipress: $2 ..." start=$SECONDS status=0 job elapsed done_of
  local shown=$message
  shift 2
  # In the background, because errexit does not act inside a condition.
  "$@" >"$log" 2>&1 </dev/null &
  job=$!
  for _ in {1..10}; do
    if [[ ! -d /proc/$job ]]; then break; fi
    sleep 0.05
  done
  if [[ -d /proc/$job ]]; then
    printf '%s' "$message"
    message=''
  fi
  # A terminal sees the seconds count, and how far ninja is; a log gets a mark every 30 s.
  while [[ -d /proc/$job ]]; do
    sleep 1
    elapsed=$((SECONDS - start))
    if ((elapsed >= 10)) && [[ -t 1 ]]; then
      done_of=$(tail -c 400 "$log" | grep -aoE '\[[0-9]+/[0-9]+\]' | tail -n 1 || true)
      printf '\r%s %d s %s ' "$shown" "$elapsed" "$done_of"
    elif ((elapsed % 30 == 0)); then
      printf ' %d s ...' "$elapsed"
    fi
  done
  wait "$job" || status=$?
  if ((status)); then
    printf '%s failed, status %d; the end of %s:\n' "$message" "$status" "$log"
    tail -n 30 "$log" >&2
    exit "$status"
  elif [[ -z $message ]]; then
    printf ' done (%d s)\n' $((SECONDS - start))
  fi
}

has_header() { printf '#include <%s>\n' "$1" | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1; }

# Fills `missing` with the Debian packages whose file or command is not here. Looks for the things
# themselves, not for package names, so that other distributions work too.
find_missing() {
  missing=()
  local pair
  command -v g++ >/dev/null || missing+=(g++)
  for pair in openssl/ssl.h:libssl-dev gtest/gtest.h:libgtest-dev; do
    has_header "${pair%%:*}" || missing+=("${pair##*:}")
  done
  for pair in cmake:cmake ninja:ninja-build ip:iproute2 sshd:openssh-server ssh:openssh-client \
              rsync:rsync; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
  done
  if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null \
      && [[ $(command -v "$PYTHON") == /usr/bin/* ]]; then
    missing+=("$(basename "$PYTHON")-venv")
  fi
}

# libFuzzer is in a package with the version in its name.
install_clang() {
  install_debian clang
  install_debian "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
}

install_debian() {
  export DEBIAN_FRONTEND=noninteractive
  # Installing sshd (for the launcher's tests) must not start a service on the user's machine.
  local policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap "rm -f $policy" EXIT
  fi
  apt-get update
  apt-get install -y --no-install-recommends "$@"
}

check_python() {
  command -v "$PYTHON" >/dev/null || fail "no Python named '$PYTHON' here: install Python 3.11 or" \
    "name another one with 'make PYTHON=/path/to/python' (3.10 or 3.11)."
  "$PYTHON" - <<'PY' || exit 1
import platform, sys
version, machine = "%d.%d" % sys.version_info[:2], platform.machine()
if not (3, 10) <= sys.version_info[:2] <= (3, 11) or machine not in ("x86_64", "aarch64"):
    sys.exit("hipress: %s is Python %s on %s, but the numpy 1.23.5 that MXNet 1.9.1 needs, and the "
             "torch 2.13 of the tests, both have wheels for 3.10 and 3.11 only, on Linux x86_64 "
             "and aarch64: name another one with 'make PYTHON=/path/to/python'."
             % (sys.executable, version, machine))
PY
}

# Prints the requirements of the package and of the named extras, one a line.
requirements() {
  .venv/bin/python - "$@" <<'PY'
import sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
for line in project["dependencies"]:
    print(line)
for extra in sys.argv[1:]:
    print("\n".join(project["optional-dependencies"][extra]))
PY
}

# Puts the package's commands (hipress, compll, ...) into .venv/bin, as an installation would.
write_commands() {
  .venv/bin/python - <<'PY'
import pathlib
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
here = pathlib.Path.cwd()
scripts = tomllib.loads((here / "pyproject.toml").read_text())["project"]["scripts"]
for name, entry in scripts.items():
    module, function = entry.split(":")
    command = here / ".venv" / "bin" / name
    command.write_text(
        f"#!{here}/.venv/bin/python\n"
        f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
    )
    command.chmod(0o755)
PY
}

# What the demo needs: MXNet, scikit-learn and matplotlib. The rest of .venv is several times as
# large.
make_demo_venv() {
  [[ -x .venv/bin/python ]] || "$PYTHON" -m venv --clear .venv
  requirements mxnet demo >.venv/demo-requirements.txt
  .venv/bin/python -m pip install --disable-pip-version-check -r .venv/demo-requirements.txt
  add_source_tree
  .venv/bin/python -c 'import mxnet, sklearn, matplotlib'
}

# The source tree itself is on the path, so that editing Python needs no new installation.
add_source_tree() {
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  printf '%s\n' "$PWD/python" >"$site/hipress-source-tree.pth"
  write_commands
}

make_venv() {
  [[ -x .venv/bin/python ]] || "$PYTHON" -m venv --clear .venv
  # Pinned, so that what the documentation says of torch's own hooks stays true.
  { requirements mxnet demo dev docs torch; printf 'torch==2.13.0\n'; } >.venv/requirements.txt
  .venv/bin/python -m pip install --disable-pip-version-check -r .venv/requirements.txt
  add_source_tree
  .venv/bin/python -c 'import mxnet, sklearn, matplotlib, torch'
}

# The last TensorFlow that takes numpy 1.23.5, for those who ask and the tests. All requirements
# again, so that none of them changes.
add_tensorflow() {
  .venv/bin/python -m pip install --disable-pip-version-check -r .venv/requirements.txt \
    tensorflow-cpu==2.17.1
  .venv/bin/python -c 'import tensorflow'
}

# Ray Train, for its tests in `make test-all`. pyarrow 18 takes no numpy 1.23.5.
add_ray() {
  .venv/bin/python -m pip install --disable-pip-version-check -r .venv/requirements.txt \
    'ray[train]>=2.50' 'pyarrow<18'
  .venv/bin/python -c 'import ray.train.torch'
}

build_native() {
  # The codecs are generated by Python: with ours, if there is one.
  local python=$PYTHON
  if [[ -x .venv/bin/python ]]; then python=$PWD/.venv/bin/python; fi
  # Each time, for a second: the folder may have been configured otherwise.
  cmake -S . -B build -G Ninja -DHIPRESS_BUILD_TESTS=ON -DHIPRESS_ISAS="$ISAS" -DPython3_EXECUTABLE="$python"
  ninja -C build -j "$JOBS" "$@"
}

# Objects that exist in build/ are not compiled again. OpenSSL and the C++ runtime are linked
# statically, so the wheel needs nothing but a C library that is as new as this machine's.
build_wheel() {
  rm -rf build/wheel
  .venv/bin/python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation \
    -C build-dir=build -C cmake.define.HIPRESS_ISAS=all \
    -C cmake.define.HIPRESS_STATIC_DEPENDENCIES=ON -w build/wheel .
  PATH=$PWD/.venv/bin:$PATH auditwheel repair -w "$WHEELS" build/wheel/*.whl
  # Settings that a wheel does not have.
  cmake -S . -B build -DHIPRESS_BUILD_TESTS=ON -DHIPRESS_ISAS="$ISAS" -DHIPRESS_CUDA=auto \
    -DHIPRESS_STATIC_DEPENDENCIES=OFF
}

case ${1:-} in
  system)
    find_missing
    if ((${#missing[@]})); then
      if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        fail "please install ${missing[*]} (Debian's names), then run make again" \
          "(as root, make installs them itself)."
      fi
      step system "installing Debian packages: ${missing[*]}" install_debian "${missing[@]}"
      find_missing
      ((${#missing[@]} == 0)) || fail "still missing after the installation: ${missing[*]}."
    fi
    check_python
    touch build/stamps/system ;;
  demo)
    check_python
    step python-demo "making .venv and installing MXNet, scikit-learn and matplotlib" make_demo_venv
    touch .venv/.demo ;;
  python)
    check_python
    step python "making .venv and installing MXNet, torch and the other Python packages" make_venv
    touch .venv/.ready .venv/.demo ;;
  tensorflow)
    step tensorflow "adding TensorFlow" add_tensorflow
    touch .venv/.tensorflow ;;
  ray)
    step ray "adding Ray" add_ray
    touch .venv/.ray ;;
  launchers)
    missing=()
    for pair in mpirun:openmpi-bin srun:slurm-client slurmctld:slurmctld slurmd:slurmd munged:munge; do
      PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
    done
    if ((${#missing[@]})); then
      [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || fail "${missing[*]} are not installed"
      step launchers "adding ${missing[*]} for the tests" install_debian "${missing[@]}"
    fi
    touch build/stamps/launchers ;;
  image)
    missing=()
    for tool in buildah debootstrap; do command -v "$tool" >/dev/null || missing+=("$tool"); done
    if ((${#missing[@]})); then
      [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || fail "${missing[*]} are not installed"
      step image "adding ${missing[*]}" install_debian "${missing[@]}"
    fi
    touch build/stamps/image ;;
  clang)
    if ! command -v clang++ >/dev/null; then
      [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || fail "clang, which libFuzzer is a part of, is not installed"
      step clang "adding clang for libFuzzer" install_clang
    fi
    touch build/stamps/clang ;;
  native)
    shift
    step native "building the native library (${*:-all})" build_native "${@:-all}" ;;
  wheel)
    step wheel "making a wheel in $WHEELS" build_wheel ;;
  *)
    fail "usage: tools/setup.sh system|demo|python|tensorflow|ray|launchers|image|clang|native [TARGET...]|wheel" ;;
esac
