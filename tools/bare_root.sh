#!/bin/bash
# README's commands on a machine that has nothing: a root made by mmdebstrap with only what README names before them.
#
#   tools/bare_root.sh [--keep] SUITE STEP…      for example: tools/bare_root.sh bookworm demo demo-as-user test
#
#   demo            make demo, as root                         check    make check   after demo, in the same clone
#   demo-as-user    make demo, as a user with sudo             test     make test    likewise
#   without-sudo    make demo, as a user without: one line     image    the steps of packaging/Dockerfile
#
# It builds what is committed. Needs root, or sudo. The output of each step stays in build/bare_root/; --keep leaves the roots there too.
set -u
cd "$(dirname "$0")/.." || exit 1
[ "$(id -u)" = 0 ] || exec sudo "$0" "$@"
keep=""
[ "${1:-}" != --keep ] || { keep=yes; shift; }
[ $# -ge 2 ] || { sed -n '2,/^# It/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
suite=$1
shift
readonly repository=$PWD logs=$PWD/build/bare_root
mkdir -p "$logs"
work=$(mktemp -d "$logs/$suite.XXXXXX") || exit 1
readonly work
passed=0 failed=0 skipped=0

# Roots are mounted in namespaces of their own (in_root), so nothing of this machine is below $work here. Should that ever be false,
# nothing is removed.
remove() {
  if findmnt -rno TARGET | grep -qF "$1"; then
    echo "bare_root: something is mounted below $1: left as it is" >&2
    return 1
  fi
  rm -rf --one-file-system "$1"
}

# What a step left running in this root, and nothing else.
end_processes() {
  local process
  for process in /proc/[0-9]*; do
    [ ! "$process/root/." -ef "$1" ] || kill -KILL "${process#/proc/}" 2>/dev/null
  done
}

finish() {
  local root
  for root in "$work"/root.*; do [ -d "$root" ] && end_processes "$root"; done
  [ -n "$keep" ] && [ -d "$work" ] && { echo "bare_root: kept $work"; return; }
  # A process that was killed a moment ago may still hold its root.
  remove "$work" 2>/dev/null || { sleep 1; remove "$work"; }
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# The sources and settings with which apt works on this machine, with another suite's name.
sources() {
  local here signed=/usr/share/keyrings/debian-archive-keyring.gpg
  here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u |
    while read -r site release component; do
      case $release in "$here" | "$here"-updates | "$here"-security) ;; *) continue ;; esac
      echo "deb [signed-by=$signed] $site ${release/#$here/$suite} $component"
    done
}

# A root with these packages, as a tar file: made once for each list.
pristine() {
  local packages=$1 tar=$work/$1.tar
  [ -e "$tar" ] && return
  # apt tells of what it has fetched: nothing on a machine that has just been made.
  sources >"$work/sources.list"
  [ -s "$work/sources.list" ] || { apt-get update -qq && sources >"$work/sources.list"; }
  apt-config dump | grep '^Acquire::.*"' | grep -v '^Acquire::\(Changelogs\|IndexTargets\)' >"$work/apt.conf"
  mmdebstrap --quiet --format=tar --variant=minbase --include="$packages" --aptopt="$work/apt.conf" "$suite" "$tar.part" "$work/sources.list" &&
    mv "$tar.part" "$tar"
}

# A fresh root: a network that works as it does here, and no services that start by themselves. Downloaded packages are shared.
new_root() {
  local root=$work/root.$1
  pristine "$2" || return 1
  mkdir -p "$root" "$work/archives" && tar -C "$root" -xf "$work/$2.tar" || return 1
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  [ ! -e /etc/npmrc ] || cp -L /etc/npmrc "$root/etc/"
  cp -RL /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null
  chroot "$root" update-ca-certificates >/dev/null 2>&1
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"  # as fast as an image is built; a crash would lose the root, not more
  chroot "$root" useradd --create-home --shell /bin/bash user || return 1
  if [ -d "$root/etc/sudoers.d" ]; then echo 'user ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/user"; fi
}

# in_root NAME USER COMMAND: with the file systems that a machine has, in a mount namespace that ends with the command. Not by chroot:
# in one there are no user namespaces, and no mount namespaces that can be made private. Processes share one namespace with this
# machine's, as -g wants to see every process.
in_root() {
  local root=$work/root.$1 user=$2 home=/root
  [ "$user" = root ] || home=/home/$user
  # shellcheck disable=SC2016
  unshare --mount --propagation private sh -euc '
    mount --bind "$1" "$1"
    cd "$1"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=755 run run
    mount --bind "$2" var/cache/apt/archives
    pivot_root . mnt
    cd /
    umount -l /mnt
    home=$3 user=$4; shift 4
    exec setpriv --reuid="$user" --regid="$user" --init-groups \
      env -i HOME="$home" USER="$user" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
  ' sh "$root" "$work/archives" "$home" "$user" ${carried[@]+"${carried[@]}"} sh -euc "cd; $3" </dev/null
}

# What a network behind a proxy or with certificates of its own needs.
carried=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS CI; do
  [ -z "${!name:-}" ] || carried+=("$name=${!name}")
done

# put_source NAME USER: what is committed, as a repository from which README's clone works.
put_source() {
  local root=$work/root.$1
  git clone --quiet --bare --depth 1 "file://$repository" "$root/ddprof.git" || return 1
  chown -R "$(chroot "$root" id -u "$2")" "$root/ddprof.git"
}
readonly clone='git clone --quiet file:///ddprof.git ddprof && cd ddprof'

# README names these before its commands; a user has sudo too.
readonly named=make,git,ca-certificates

demo() { new_root demo "$named" && put_source demo root && in_root demo root "$clone && make demo"; }
demo_as_user() { new_root user "$named,sudo" && put_source user user && in_root user user "$clone && make demo"; }
shows_a_profile() { grep -q 'shop::is_blocked' "$log"; }
shows_what_readme_shows() { shows_a_profile && tools/refresh_examples.py --demo "$log"; }
check() { in_root demo root "cd ddprof && make check"; }
test_all() { in_root demo root "cd ddprof && make test"; }

without_sudo() { new_root poor "$named" && put_source poor user && ! in_root poor user "$clone && make demo"; }
says_what_to_type() {
  [ "$(grep -c '^bootstrap: ' "$log")" = 1 ] && grep -q '^bootstrap: .*as root: apt-get .*install.* g++ ' "$log"
}

# What a container engine would do with packaging/Dockerfile, a root for each stage; then a minute of the image's own command.
image() {
  local word rest stage="" folder="" settings=""
  while read -r word rest; do
    case $word in
      FROM) stage=${rest##* AS } stage=${stage//[^a-z]/} folder=/ settings="" && new_root "$stage" apt || return 1 ;;
      WORKDIR) folder=$rest ;;
      ENV) settings=$rest ;;
      COPY)
        # shellcheck disable=SC2086
        set -- $rest
        if [ "$1" = . ]; then
          mkdir -p "$work/root.$stage$2" && git archive HEAD | tar -C "$work/root.$stage$2" -xf -
        else
          cp -a "$work/root.${1#--from=}$2" "$work/root.$stage$3"
        fi || return 1
        ;;
      RUN) in_root "$stage" root "cd $folder && $rest" || return 1 ;;
      VOLUME) mkdir -p "$work/root.$stage$rest" ;;
    esac
  done < <(sed -e ':next;/\\$/{N;s/\\\n//;b next}' packaging/Dockerfile)
  in_root "$stage" root "test -s /etc/ssl/certs/ca-certificates.crt && export $settings && ddprof -g -d 2 && find /profiles -name '*.pb.gz'"
}
shows_a_file() { grep -q '^/profiles/.*pb\.gz$' "$log"; }

# run_step NAME FUNCTION [WHAT ITS OUTPUT MUST HOLD]. Lines of a test run are shown while it runs; its count is added to ours.
run_step() {
  local step=$1 before=$SECONDS status counts
  log=$logs/$suite.$step.log
  (set -o pipefail; "$2" 2>&1 | tee "$log" | sed -nu 's/^\(ok \|FAILED \|ran \|bootstrap: \)/        \1/p') </dev/null
  status=$?
  [ "$status" != 0 ] || "${3:-true}" || status=1
  read -r -a counts < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 \2 \3/p' "$log" | tail -n 1)
  # A step without a count of its own is one test; so is one that failed outside of its tests.
  if [ "${#counts[@]}" != 3 ]; then counts=($((status == 0)) $((status != 0)) 0); fi
  [ "$status" = 0 ] || [ "${counts[1]}" != 0 ] || counts[1]=1
  passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
  if [ "$status" = 0 ]; then
    echo "ok      $suite: $step ($((SECONDS - before)) s)"
  else
    echo "FAILED  $suite: $step ($((SECONDS - before)) s); the whole output is in $log, the end of what failed:"
    # Without what ninja says, and from the first failure on where a line says that there was one.
    { sed -n '/^FAILED/,$p' "$log" | grep . || cat "$log"; } | grep -v '^\[[0-9]*/[0-9]*\] ' | tail -n 200
  fi
}

tools/bootstrap.sh root || exit 1
[ -z "$(git status --porcelain 2>/dev/null)" ] || echo "bare_root: what is not committed is not in it"
for step in "$@"; do
  case $step in
    demo) run_step "$step" demo shows_what_readme_shows ;;
    demo-as-user) run_step "$step" demo_as_user shows_a_profile ;;
    without-sudo) run_step "$step" without_sudo says_what_to_type ;;
    image) run_step "$step" image shows_a_file ;;
    check) run_step "$step" check ;;
    test) run_step "$step" test_all ;;
    *) echo "bare_root: unknown step $step" >&2; exit 2 ;;
  esac
done
echo "$SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
