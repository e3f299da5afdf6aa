# A server that is cheap to start, for thousands of deaths: `die` leaves two grandchildren behind, one of them in a
# session of its own, and kills itself. With the argument "stubborn" it survives the end of its input, and SIGTERM.
say() { printf '%s\n' "$1"; }
[ "$1" = stubborn ] && trap '' TERM HUP INT
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      say '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mortal","version":"1"}}}' ;;
    *'"method":"tools/list"'*)
      say '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"pid","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}}' ;;
    *'"name":"die"'*)
      sleep 1000 &
      setsid sleep 1000 &
      kill -s KILL $$ ;;
    *'"method":"tools/call"'*)
      say '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"'$$'"}]}}' ;;
    *'"id":'*)
      say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no such method"}}' ;;
  esac
done
[ "$1" = stubborn ] && while :; do sleep 1; done
