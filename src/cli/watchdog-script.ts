/**
 * The watchdog, in POSIX shell. It needs no other tool than `sleep`.
 *
 * Arguments: the grace period in milliseconds; a text that only the command has in its environment.
 * Input, line by line: "watch SESSION STARTED", "alive SECONDS", "done".
 * When the seconds of the last "alive" have passed, or the input ends without "done": SIGTERM to
 * every process group of the session, after the grace period SIGKILL.
 *
 * If `holdfast` was killed or stopped right after it started the command, no "watch" came. Then the
 * watchdog searches for the session leader that has the text in its environment. (The shell's
 * `read` drops the NULs between the variables.)
 *
 * In some systems `sleep` takes no fractions. There it sleeps for whole seconds, rounded down, but
 * at least one: a lease of less than a second must not end its command at once.
 *
 * Each look at the processes takes time: with thousands of them, several times as long as the pause
 * between two looks. So the grace period also ends by the uptime of the machine.
 *
 * Process ids are reused. While one process of the session lives, the kernel does not reuse its id.
 * When all have ended and another process has it, its start time differs, and the watchdog ignores
 * it.
 */
export const WATCHDOG_SCRIPT = `
grace=$1 mark=$2 session= started= timer=

is_marked() {
  while read -r line || [ -n "$line" ]; do
    case $line in *"$mark"*) return 0 ;; esac
  done <"$1"
  return 1
}

find_session() {
  for folder in /proc/[0-9]*; do
    read -r line <"$folder/stat" || continue
    set -- \${line##*) }
    [ "$4" = "\${folder#/proc/}" ] && is_marked "$folder/environ" || continue
    session=$4 started=\${20}
    return
  done
}

is_ours() {
  read -r line 2>/dev/null <"/proc/$session/stat" || return 0
  set -- \${line##*) }
  [ "\${20}" = "$started" ]
}

groups() {
  is_ours || return
  [ -r /proc/self/stat ] || { kill -s 0 -- "-$session" && echo "$session"; return; }
  found=' '
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" || continue
    set -- \${line##*) }
    [ "$4" = "$session" ] && [ "$1" != Z ] || continue
    case $found in *" $3 "*) continue ;; esac
    found="$found$3 "
    echo "$3"
  done
}

read_uptime() {
  read -r line </proc/uptime && uptime=\${line%%.*} || uptime=0
}

send() {
  for group in $(groups); do kill -s "$1" -- "-$group"; done
}

end() {
  for round in 1 2 3 4 5 6 7 8 9 10; do
    [ -z "$session" ] || break
    find_session
    [ -n "$session" ] || sleep 0.1 || sleep 1
  done
  [ -n "$session" ] || return
  [ "$grace" -eq 0 ] || { send TERM; send CONT; }
  read_uptime
  waited=0 begun=$((uptime + 1))
  while [ "$waited" -lt "$grace" ] && [ -n "$(groups)" ]; do
    sleep 0.1 || sleep 1
    waited=$((waited + 100))
    read_uptime
    elapsed=$(((uptime - begun) * 1000))
    [ "$elapsed" -le "$waited" ] || waited=$elapsed
  done
  for round in 1 2 3 4 5; do
    [ -n "$(groups)" ] || return
    send KILL
    sleep 0.1 || sleep 1
  done
}

end_after() {
  trap 'kill "$!"; exit' TERM
  whole=\${1%.*}
  [ "$whole" -gt 0 ] || whole=1
  for seconds in "$1" "$whole"; do
    sleep "$seconds" &
    wait "$!" && break
  done
  end
}

disarm() {
  [ -z "$timer" ] || kill "$timer"
  timer=
}

while read -r word first second; do
  case $word in
    watch) session=$first started=$second ;;
    alive) disarm; end_after "$first" & timer=$! ;;
    done) disarm; exit 0 ;;
  esac
done
disarm
end
exit 0
`
