# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Part of deploy/compose/run: tests from inside each party's container of a running rank.yaml which hosts it can reach
# and which files and rights it has. Violations of the trust boundary are marked, and the exit status is 1.
crossed=0
parties=(worker-1 broker thirdparty requester)

# The requester has ended, so a container with the same network and volumes takes its place.
stand_in=$("$engine" run -d --network "${project}_crowd" --volumes-from "$requester" --read-only --cap-drop ALL \
  --security-opt no-new-privileges --entrypoint sleep crowdveil 600 2> "$log") ||
  { tail -n 5 "$log" >&2; die 1 "cannot start a container in place of the requester's; see the lines above"; }

declare -A id=([requester]=$stand_in)
for party in worker-1 broker thirdparty; do
  id[$party]=$(containers "$party")
done

# inside PARTY COMMAND: runs a shell command in a party's container. The timeout allows for a name server that does not
# have a new container yet.
inside() {
  "$engine" exec "${id[$1]}" timeout 20 bash -c "$2" 2> /dev/null < /dev/null
}

# Prints a line NETWORK ADDRESS GATEWAY for each network of a service.
networks_of() {
  "$engine" inspect --format \
    '{{range $n, $e := .NetworkSettings.Networks}}{{$n}} {{$e.IPAddress}} {{$e.Gateway}}{{"\n"}}{{end}}' \
    "${id[$1]}" | sed "/^ *\$/d; s/^${project}_//"
}

# reach FROM HOST PORT: prints the result of a connection attempt. "refused" comes from the host, so it is reachable.
reach() {
  local said
  said=$(inside "$1" "exec 2>&1; exec 3<> /dev/tcp/$2/$3") && echo reached && return
  case $said in
    *'onnection refused'*) echo refused ;;
    *'esolution'* | *'not known'* | *'No address'*) echo 'no such name' ;;
    *) echo 'not reachable' ;;
  esac
}

# expect FROM HOST PORT WORD HOW: tests one connection and prints a line. WORD is yes (must succeed), may (may connect:
# TLS refuses the certificate), no (must not reach the host), bridge (the host itself may refuse).
expect() {
  local found mark='' tries=5
  found=$(reach "$1" "$2" "$3")
  while [ "$4" = yes ] && [ "$found" != reached ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1)) # a name server may not have a new container yet
    sleep 2
    found=$(reach "$1" "$2" "$3")
  done
  case $4:$found in
    yes:reached | no:no* | bridge:no* | bridge:refused) ;;
    may:*) [ "$found" != reached ] || found='reached; TLS refuses the certificate' ;;
    *) mark='   <-- VIOLATION' && crossed=1 ;;
  esac
  printf '    %-42s %s%s\n' "$5" "$found" "$mark"
}

# reaches FROM SERVICE PORT WORD: tests the name, each address, and the host's bridges.
reaches() {
  local network address gateway
  expect "$1" "$2" "$3" "$4" "$2:$3 by name"
  while read -r network address gateway; do
    if networks_of "$1" | grep -q "^$network "; then
      expect "$1" "$address" "$3" "$4" "$2:$3 at $address on $network"
    else
      expect "$1" "$address" "$3" no "$2:$3 at $address on $network"
    fi
  done < <(networks_of "$2")
  [ "$4" != no ] || while read -r gateway; do
    expect "$1" "$gateway" "$3" bridge "$2:$3 by the bridge $gateway"
  done < <({ networks_of "$1" && networks_of "$2"; } | awk '{print $3}' | sort -u)
}

show_reach() {
  local service
  echo '  reaches'
  case $1 in
    worker-1 | requester) reaches "$1" broker 7401 yes && reaches "$1" thirdparty 7402 no ;;
    broker) reaches "$1" thirdparty 7402 yes ;;
    thirdparty) reaches "$1" broker 7401 may && reaches "$1" worker-1 7401 no ;;
  esac
  if inside "$1" "grep -q '^[^[:space:]]*[[:space:]]00000000' /proc/net/route"; then
    if [ "$1" = thirdparty ] && networks_of "$1" | grep -q '^page '; then
      echo '    a route out: by the network of its page; its sandbox permits no connection'
    else
      echo '    a route out: yes   <-- VIOLATION' && crossed=1
    fi
  else
    echo '    a route out: none'
  fi
}

# Prints the volumes of a container and the files that its user can read in them.
# Only the third-party is on the network of its page.
show_page() {
  networks_of "$1" | grep -q '^page ' || return 0
  [ "$1" = thirdparty ] || { echo '    on the network page   <-- VIOLATION'; crossed=1; }
}

show_files() {
  local volume place files
  echo '  reads and holds'
  while read -r volume place; do
    files=$(inside "$1" "cd $place && find . -type f -printf '%P (%s bytes), '") || files='no readable files'
    printf '    %-42s %s: %s\n' "$place" "${volume#"${project}_"}" "${files%, }"
    case $1:${volume#"${project}_rank-"} in
      worker-1:worker-1-tls | broker:broker-* | thirdparty:thirdparty-* | requester:requester-tls) ;;
      *) echo "      <-- VIOLATION: $volume is another party's" && crossed=1 ;;
    esac
  done < <("$engine" inspect --format '{{range .Mounts}}{{if .Name}}{{.Name}} {{.Destination}}{{"\n"}}{{end}}{{end}}' \
    "${id[$1]}" | sed '/^ *$/d' | sort)
}

show_knowledge() {
  echo '  learns'
  case $1 in
    worker-1) echo '    the scores of its own workers and their assignments' ;;
    broker) echo '    scores until they are summed; sums, noisy sums, decisions, number of tokens of each worker' ;;
    thirdparty) echo '    noisy sums and its own decisions; no data of single workers' ;;
    requester) echo '    progress, the ranking with noisy means, and the epsilon spent' ;;
  esac
}

show_rights() {
  local status root
  status=$(inside "$1" 'grep -E "^(Uid|CapEff|CapBnd|NoNewPrivs):" /proc/1/status | tr -s "[:space:]" " "')
  root=$(inside "$1" 'touch /probe && echo writable || echo read-only')
  echo '  may'
  echo "    ${status% }; root $root"
  [[ $status == *'CapEff: 0000000000000000'*'CapBnd: 0000000000000000'*'NoNewPrivs: 1'* && $root == read-only &&
    $status != 'Uid: 0 '* ]] || { echo '      <-- VIOLATION'; crossed=1; }
}

for party in "${parties[@]}"; do
  echo
  echo "$party"
  show_reach "$party"
  show_page "$party"
  show_files "$party"
  show_knowledge "$party"
  show_rights "$party"
done
echo
echo 'certificates (ended): the only container with the private key of the CA'
if [ "$crossed" = 0 ]; then
  echo 'boundary: every party has only the access it needs'
else
  echo 'boundary: violated; see the marked lines' >&2
  ended=1
fi
