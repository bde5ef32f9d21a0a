#!/usr/bin/env bash
# Installs valkey-server on Debian or Ubuntu, for the tests that MILLRACE_REDIS_SERVER=valkey-server runs on it.
# Debian 12 has it in its backports: the sources and lists of the machine stay as they are, because apt gets
# copies of them. Exits with 0 and a message where no source has it. Arguments are passed to `apt-get install`.
set -euo pipefail
if command -v valkey-server > /dev/null; then exit 0; fi
if ! command -v apt-get > /dev/null; then
  echo 'valkey-server is not installed: no apt-get'
  exit 0
fi
as_root=$([ "$(id -u)" = 0 ] || echo sudo)
. /etc/os-release
temporary=$(mktemp -d)
trap '$as_root rm -rf "$temporary"' EXIT
chmod 755 "$temporary"
mkdir -p "$temporary"/{sources,lists/partial}
cp /etc/apt/sources.list.d/* "$temporary/sources/" 2> /dev/null || true
if [ "$ID" = debian ]; then
  cat > "$temporary/sources/millrace-backports.sources" << END
Types: deb
URIs: http://deb.debian.org/debian
Suites: $VERSION_CODENAME-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
fi
apt=(-q -o DPkg::Lock::Timeout=300 -o "Dir::Etc::sourceparts=$temporary/sources" -o "Dir::State::lists=$temporary/lists")
$as_root apt-get "${apt[@]}" update
if ! apt-cache "${apt[@]}" show valkey-server > /dev/null 2>&1; then
  echo 'valkey-server is not installed: no package source has it'
  exit 0
fi
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get "${apt[@]}" -y --no-install-recommends "$@" install valkey-server
