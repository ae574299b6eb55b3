# SPDX-License-Identifier: Apache-2.0
# What the scripts need to know about this Debian: its release and its mirror. Sourced, never run.
# shellcheck shell=bash disable=SC2016,SC1091

# Prints the codename of the running Debian (bookworm, trixie), or nothing on another system.
debian_codename() {
  (
    . /etc/os-release 2>/dev/null || exit 0
    [ "${ID:-}" = debian ] && printf '%s\n' "${VERSION_CODENAME:-}"
    exit 0
  )
}

# Prints the suites that apt is configured for, one a line, as the source lists spell them.
debian_suites() {
  apt-get indextargets --format '$(RELEASE)' 'Created-By: Packages' 2>/dev/null | sort -u
}

# Prints the address of the Debian archive this machine is configured for (not the security archive).
# It comes from apt's own configuration, so that a site's mirror is used wherever we add a suite.
debian_mirror() {
  local codename
  codename=$(debian_codename)
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="$codename" '($1 == suite || $1 == "stable" || $1 == "oldstable") && $2 !~ /security/ { print $2; exit }'
}
