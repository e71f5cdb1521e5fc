# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Part of deploy/compose/run: what each party of a running rank.yaml can reach, read, hold and do, tried from inside its
# container. Whatever crosses the trust boundary is marked, and the exit status is 1.
crossed=0
parties=(worker-1 broker thirdparty requester)

# The requester has ended: one like it, on its network and with its volumes, is asked in its place.
stand_in=$("$engine" run -d --network "${project}_crowd" --volumes-from "$requester" --read-only --cap-drop ALL \
  --security-opt no-new-privileges --entrypoint sleep crowdveil 600 2> "$log") ||
  { tail -n 5 "$log" >&2; die 1 "no container like the requester's can be started; see the lines above"; }

declare -A id=([requester]=$stand_in)
for party in worker-1 broker thirdparty; do
  id[$party]=$(containers "$party")
done

# Starts a shell's command in a party's container. The programs need no shell; this needs one. The time is for a name
# server that is just being told of another container.
inside() {
  "$engine" exec "${id[$1]}" timeout 20 bash -c "$2" 2> /dev/null < /dev/null
}

# NETWORK ADDRESS GATEWAY, a line for each network of a service.
networks_of() {
  "$engine" inspect --format \
    '{{range $n, $e := .NetworkSettings.Networks}}{{$n}} {{$e.IPAddress}} {{$e.Gateway}}{{"\n"}}{{end}}' \
    "${id[$1]}" | sed "/^ *\$/d; s/^${project}_//"
}

# reach FROM HOST PORT: what becomes of a connection. Only "refused" comes from the host itself.
reach() {
  local said
  said=$(inside "$1" "exec 2>&1; exec 3<> /dev/tcp/$2/$3") && echo reached && return
  case $said in
    *'onnection refused'*) echo refused ;;
    *'esolution'* | *'not known'* | *'No address'*) echo 'no such name' ;;
    *) echo 'no way there' ;;
  esac
}

# expect FROM HOST PORT WORD HOW: a line for one attempt. WORD is yes (has to reach it), may (is turned away there, by its
# certificate), no (must not come near), bridge (the host itself may refuse).
expect() {
  local found mark='' tries=5
  found=$(reach "$1" "$2" "$3")
  while [ "$4" = yes ] && [ "$found" != reached ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1)) # a name server that is just being told of a container gives no answer
    sleep 2
    found=$(reach "$1" "$2" "$3")
  done
  case $4:$found in
    yes:reached | no:no* | bridge:no* | bridge:refused) ;;
    may:*) [ "$found" != reached ] || found='reached; its certificate is turned away' ;;
    *) mark='   <-- NOT AS IT SHOULD BE' && crossed=1 ;;
  esac
  printf '    %-42s %s%s\n' "$5" "$found" "$mark"
}

# reaches FROM SERVICE PORT WORD: by name, by each address on a network, and over the bridges of the host.
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
    echo '    a route out: there is one   <-- NOT AS IT SHOULD BE' && crossed=1
  else
    echo '    a route out: none'
  fi
}

# The volumes of a container, and what lies in them, as its own user sees it.
show_files() {
  local volume place files
  echo '  reads and holds'
  while read -r volume place; do
    files=$(inside "$1" "cd $place && find . -type f -printf '%P (%s bytes), '") || files='nothing that it can read'
    printf '    %-42s %s: %s\n' "$place" "${volume#"${project}_"}" "${files%, }"
    case $1:${volume#"${project}_rank-"} in
      worker-1:worker-1-tls | broker:broker-* | thirdparty:thirdparty-* | requester:requester-tls) ;;
      *) echo "      <-- NOT AS IT SHOULD BE: $volume is another party's" && crossed=1 ;;
    esac
  done < <("$engine" inspect --format '{{range .Mounts}}{{if .Name}}{{.Name}} {{.Destination}}{{"\n"}}{{end}}{{end}}' \
    "${id[$1]}" | sed '/^ *$/d' | sort)
}

show_knowledge() {
  echo '  learns'
  case $1 in
    worker-1) echo '    the scores of its own workers, and what is asked of them' ;;
    broker) echo '    scores until they are added up; sealed sums, noisy sums, decisions, how often each gave' ;;
    thirdparty) echo '    noisy sums and its own decisions; nothing of one person' ;;
    requester) echo '    progress, the ranking with noisy means, and what it has cost' ;;
  esac
}

show_rights() {
  local status root
  status=$(inside "$1" 'grep -E "^(Uid|CapEff|CapBnd|NoNewPrivs):" /proc/1/status | tr -s "[:space:]" " "')
  root=$(inside "$1" 'touch /probe && echo writable || echo read-only')
  echo '  may'
  echo "    ${status% }; root $root"
  [[ $status == *'CapEff: 0000000000000000'*'CapBnd: 0000000000000000'*'NoNewPrivs: 1'* && $root == read-only &&
    $status != 'Uid: 0 '* ]] || { echo '      <-- NOT AS IT SHOULD BE'; crossed=1; }
}

for party in "${parties[@]}"; do
  echo
  echo "$party"
  show_reach "$party"
  show_files "$party"
  show_knowledge "$party"
  show_rights "$party"
done
echo
echo 'certificates (ended): the only container with the volume of the key of the authority'
if [ "$crossed" = 0 ]; then
  echo 'boundary: nobody reaches, reads or may do more than its part'
else
  echo 'boundary: crossed, see the marks' >&2
  ended=1
fi
