#!/usr/bin/env bash
# Installs what the full tests need that `npm ci` does not, on Debian or Ubuntu: GCC, make and Python for the addon and
# its sanitizers; faketime for the test that sets the wall clock of a running server; chromium for the test of a page in
# a browser; redis-server, memcached, nginx, haproxy and prometheus (with promtool), which tests start in processes of their own:
# no service is used; systemd-analyze, which checks a unit of systemd; curl, which a page has its reader type.
set -euo pipefail
missing=()
command -v faketime > /dev/null || missing+=(faketime)
command -v c++ > /dev/null || missing+=(g++)
command -v make > /dev/null || missing+=(make)
command -v python3 > /dev/null || missing+=(python3)
command -v chromium chromium-browser google-chrome > /dev/null || missing+=(chromium)
command -v redis-server > /dev/null || missing+=(redis-server)
command -v memcached > /dev/null || missing+=(memcached)
command -v nginx > /dev/null || missing+=(nginx-light)
command -v haproxy > /dev/null || missing+=(haproxy)
command -v prometheus promtool > /dev/null || missing+=(prometheus)
command -v systemd-analyze > /dev/null || missing+=(systemd)
command -v curl > /dev/null || missing+=(curl)
if [ ${#missing[@]} = 0 ]; then exit 0; fi
as_root=$([ "$(id -u)" = 0 ] || echo sudo)
$as_root apt-get -q -o DPkg::Lock::Timeout=300 update
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}"
