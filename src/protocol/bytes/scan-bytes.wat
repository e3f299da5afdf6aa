;; The loops of scan-bytes.ts. Assembled by `npm run scan-bytes` into scan-bytes-program.ts.
;; Memory: bytes to be read from 0 on (CHUNK bytes and some slack), the name of a member at NAME, the names of a count
;; at BITS.
(module
  (memory (export "memory") 2)

  ;; What the walk remembers between two chunks.
  (global $depth (export "depth") (mut i32) (i32.const 0))
  ;; 0: between values, 1: in a string, 2: in the name of a member of the outermost object.
  (global $mode (export "mode") (mut i32) (i32.const 0))
  ;; The next byte is behind a backslash.
  (global $escaped (export "escaped") (mut i32) (i32.const 0))
  ;; In the outermost object, a string here would be a name.
  (global $wantsName (export "wantsName") (mut i32) (i32.const 0))
  ;; Of the name that is being read, or was read last; it counts on past the room for it.
  (global $nameLength (export "nameLength") (mut i32) (i32.const 0))
  ;; A name has just ended; the reader sets it back.
  (global $named (export "named") (mut i32) (i32.const 0))
  ;; Something other than white space came after the outermost value.
  (global $trailing (export "trailing") (mut i32) (i32.const 0))
  ;; The outermost value has ended.
  (global $closed (export "closed") (mut i32) (i32.const 0))

  ;; The first d" or D" or \u in [$i, $end), or -1. An index of $end - 1 or more means nothing: what lies there is old.
  (func (export "find") (param $i i32) (param $end i32) (result i32)
    (local $d v128) (local $small v128) (local $quote v128) (local $slash v128) (local $u v128) (local $hits i32)
    (local $a v128) (local $b v128)
    (local.set $d (i8x16.splat (i32.const 0x64)))
    ;; The bit that makes a capital letter a small one.
    (local.set $small (i8x16.splat (i32.const 0x20)))
    (local.set $quote (i8x16.splat (i32.const 0x22)))
    (local.set $slash (i8x16.splat (i32.const 0x5c)))
    (local.set $u (i8x16.splat (i32.const 0x75)))
    (block $none
      (loop $wide
        (br_if $none (i32.ge_u (local.get $i) (local.get $end)))
        (block $hit
          (br_if $hit (v128.any_true (v128.or
            (v128.or
              (v128.or
                (v128.and
                  (i8x16.eq (v128.or (local.tee $a (v128.load (local.get $i))) (local.get $small)) (local.get $d))
                  (i8x16.eq (local.tee $b (v128.load offset=1 (local.get $i))) (local.get $quote)))
                (v128.and
                  (i8x16.eq (local.get $a) (local.get $slash))
                  (i8x16.eq (local.get $b) (local.get $u))))
              (v128.or
                (v128.and
                  (i8x16.eq (v128.or (local.tee $a (v128.load offset=16 (local.get $i))) (local.get $small)) (local.get $d))
                  (i8x16.eq (local.tee $b (v128.load offset=17 (local.get $i))) (local.get $quote)))
                (v128.and
                  (i8x16.eq (local.get $a) (local.get $slash))
                  (i8x16.eq (local.get $b) (local.get $u)))))
            (v128.or
              (v128.or
                (v128.and
                  (i8x16.eq (v128.or (local.tee $a (v128.load offset=32 (local.get $i))) (local.get $small)) (local.get $d))
                  (i8x16.eq (local.tee $b (v128.load offset=33 (local.get $i))) (local.get $quote)))
                (v128.and
                  (i8x16.eq (local.get $a) (local.get $slash))
                  (i8x16.eq (local.get $b) (local.get $u))))
              (v128.or
                (v128.and
                  (i8x16.eq (v128.or (local.tee $a (v128.load offset=48 (local.get $i))) (local.get $small)) (local.get $d))
                  (i8x16.eq (local.tee $b (v128.load offset=49 (local.get $i))) (local.get $quote)))
                (v128.and
                  (i8x16.eq (local.get $a) (local.get $slash))
                  (i8x16.eq (local.get $b) (local.get $u))))))))
          (local.set $i (i32.add (local.get $i) (i32.const 64)))
          (br $wide))
        ;; One of the 64: which?
        (loop $narrow
          (local.set $hits (i8x16.bitmask (v128.or
            (v128.and
              (i8x16.eq (v128.or (local.tee $a (v128.load (local.get $i))) (local.get $small)) (local.get $d))
              (i8x16.eq (local.tee $b (v128.load offset=1 (local.get $i))) (local.get $quote)))
            (v128.and
              (i8x16.eq (local.get $a) (local.get $slash))
              (i8x16.eq (local.get $b) (local.get $u))))))
          (if (local.get $hits)
            (then (return (i32.add (local.get $i) (i32.ctz (local.get $hits))))))
          (local.set $i (i32.add (local.get $i) (i32.const 16)))
          (br $narrow))))
    (i32.const -1))

  ;; Walks over [$i, $end). Returns behind the end of a name of the outermost object, else $end.
  (func (export "walk") (param $i i32) (param $end i32) (param $name i32) (param $room i32) (result i32)
    (local $c i32) (local $hits i32) (local $quote v128) (local $slash v128)
    (local.set $quote (i8x16.splat (i32.const 0x22)))
    (local.set $slash (i8x16.splat (i32.const 0x5c)))
    (block $out
      (loop $next
        (br_if $out (i32.ge_u (local.get $i) (local.get $end)))
        (if (i32.eq (global.get $mode) (i32.const 1))
          (then
            (if (global.get $escaped)
              (then
                (global.set $escaped (i32.const 0))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br $next)))
            ;; To the next quote or backslash.
            (local.set $hits (i8x16.bitmask (v128.or
              (i8x16.eq (v128.load (local.get $i)) (local.get $quote))
              (i8x16.eq (v128.load (local.get $i)) (local.get $slash)))))
            (if (i32.eqz (local.get $hits))
              (then
                (local.set $i (i32.add (local.get $i) (i32.const 16)))
                (br $next)))
            (local.set $i (i32.add (local.get $i) (i32.ctz (local.get $hits))))
            (br_if $out (i32.ge_u (local.get $i) (local.get $end)))
            (if (i32.eq (i32.load8_u (local.get $i)) (i32.const 0x5c))
              (then (global.set $escaped (i32.const 1)))
              (else (global.set $mode (i32.const 0))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (local.set $c (i32.load8_u (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (if (i32.eq (global.get $mode) (i32.const 2))
          (then
            (if (i32.and (i32.eq (local.get $c) (i32.const 0x22)) (i32.eqz (global.get $escaped)))
              (then
                (global.set $mode (i32.const 0))
                (global.set $named (i32.const 1))
                (return (local.get $i))))
            (if (i32.lt_u (global.get $nameLength) (local.get $room))
              (then (i32.store8 (i32.add (local.get $name) (global.get $nameLength)) (local.get $c))))
            (global.set $nameLength (i32.add (global.get $nameLength) (i32.const 1)))
            (global.set $escaped (i32.and
              (i32.eq (local.get $c) (i32.const 0x5c))
              (i32.eqz (global.get $escaped))))
            (br $next)))
        ;; White space, digits and the letters of literals say nothing.
        (if (i32.eq (local.get $c) (i32.const 0x22))
          (then
            (if (global.get $closed) (then (global.set $trailing (i32.const 1))))
            (if (i32.and (global.get $wantsName) (i32.eq (global.get $depth) (i32.const 1)))
              (then
                (global.set $mode (i32.const 2))
                (global.set $wantsName (i32.const 0))
                (global.set $nameLength (i32.const 0)))
              (else (global.set $mode (i32.const 1))))
            (br $next)))
        ;; { and [, } and ] differ by one bit.
        (if (i32.eq (i32.or (local.get $c) (i32.const 0x20)) (i32.const 0x7b))
          (then
            (if (global.get $closed) (then (global.set $trailing (i32.const 1))))
            (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
            (if (i32.eq (global.get $depth) (i32.const 1))
              (then (global.set $wantsName (i32.eq (local.get $c) (i32.const 0x7b)))))
            (br $next)))
        (if (i32.eq (i32.or (local.get $c) (i32.const 0x20)) (i32.const 0x7d))
          (then
            (if (global.get $closed) (then (global.set $trailing (i32.const 1))))
            (global.set $depth (i32.sub (global.get $depth) (i32.const 1)))
            (if (i32.eqz (global.get $depth)) (then (global.set $closed (i32.const 1))))
            (br $next)))
        (if (i32.eq (global.get $depth) (i32.const 1))
          (then
            (if (i32.eq (local.get $c) (i32.const 0x2c)) (then (global.set $wantsName (i32.const 1)))))
          (else
            (if (i32.and (global.get $closed) (i32.gt_u (local.get $c) (i32.const 0x20)))
              (then (global.set $trailing (i32.const 1))))))
        (br $next)))
    (local.get $end))

  ;; What the count remembers between two chunks.
  (global $shapeDepth (export "shapeDepth") (mut i32) (i32.const 0))
  (global $shapeDeepest (export "shapeDeepest") (mut i32) (i32.const 0))
  (global $shapeValues (export "shapeValues") (mut i32) (i32.const 0))
  (global $shapeNames (export "shapeNames") (mut i32) (i32.const 0))
  (global $shapeInString (export "shapeInString") (mut i32) (i32.const 0))
  (global $shapeEscaped (export "shapeEscaped") (mut i32) (i32.const 0))
  ;; An object or array has just begun, and nothing of it has come.
  (global $shapeFresh (export "shapeFresh") (mut i32) (i32.const 0))
  ;; Of the string that is being read, or was read last.
  (global $shapeHash (export "shapeHash") (mut i32) (i32.const 0))

  ;; Counts in [$i, $end): elements and members, how deep they nest, and about how many different names members have.
  ;; $bits: 128 Ki of them, one for each hash of a name that was seen. A string before a colon is a name.
  (func (export "shape") (param $i i32) (param $end i32) (param $bits i32) (param $seed i32)
    (local $c i32) (local $hash i32) (local $in i32) (local $escaped i32) (local $fresh i32) (local $values i32)
    (local $bit i32) (local $at i32) (local $mask i32)
    (local.set $hash (global.get $shapeHash))
    (local.set $in (global.get $shapeInString))
    (local.set $escaped (global.get $shapeEscaped))
    (local.set $fresh (global.get $shapeFresh))
    (local.set $values (global.get $shapeValues))
    (block $out
      (loop $next
        (br_if $out (i32.ge_u (local.get $i) (local.get $end)))
        (local.set $c (i32.load8_u (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (if (local.get $in)
          (then
            (if (local.get $escaped)
              (then (local.set $escaped (i32.const 0)))
              (else
                (if (i32.eq (local.get $c) (i32.const 0x22))
                  (then
                    (local.set $in (i32.const 0))
                    (br $next)))
                (local.set $escaped (i32.eq (local.get $c) (i32.const 0x5c)))))
            (local.set $hash (i32.mul (i32.xor (local.get $hash) (local.get $c)) (i32.const 0x01000193)))
            (br $next)))
        (br_if $next (i32.le_u (local.get $c) (i32.const 0x20)))
        (if (i32.eq (local.get $c) (i32.const 0x2c))
          (then
            (local.set $values (i32.add (local.get $values) (i32.const 1)))
            (br $next)))
        (if (i32.eq (i32.or (local.get $c) (i32.const 0x20)) (i32.const 0x7d))
          (then
            (local.set $fresh (i32.const 0))
            (global.set $shapeDepth (i32.sub (global.get $shapeDepth) (i32.const 1)))
            (br $next)))
        ;; The first of its object or array: those behind it have a comma before them.
        (local.set $values (i32.add (local.get $values) (local.get $fresh)))
        (local.set $fresh (i32.const 0))
        (if (i32.eq (local.get $c) (i32.const 0x22))
          (then
            (local.set $in (i32.const 1))
            (local.set $hash (local.get $seed))
            (br $next)))
        (if (i32.eq (i32.or (local.get $c) (i32.const 0x20)) (i32.const 0x7b))
          (then
            (local.set $fresh (i32.const 1))
            (global.set $shapeDepth (i32.add (global.get $shapeDepth) (i32.const 1)))
            (if (i32.gt_s (global.get $shapeDepth) (global.get $shapeDeepest))
              (then (global.set $shapeDeepest (global.get $shapeDepth))))
            (br $next)))
        (br_if $next (i32.ne (local.get $c) (i32.const 0x3a)))
        (local.set $bit (i32.and
          (i32.xor (local.get $hash) (i32.shr_u (local.get $hash) (i32.const 15)))
          (i32.const 0x1ffff)))
        (local.set $at (i32.add (local.get $bits) (i32.shr_u (local.get $bit) (i32.const 3))))
        (local.set $mask (i32.shl (i32.const 1) (i32.and (local.get $bit) (i32.const 7))))
        (if (i32.eqz (i32.and (i32.load8_u (local.get $at)) (local.get $mask)))
          (then
            (i32.store8 (local.get $at) (i32.or (i32.load8_u (local.get $at)) (local.get $mask)))
            (global.set $shapeNames (i32.add (global.get $shapeNames) (i32.const 1)))))
        (br $next)))
    (global.set $shapeHash (local.get $hash))
    (global.set $shapeInString (local.get $in))
    (global.set $shapeEscaped (local.get $escaped))
    (global.set $shapeFresh (local.get $fresh))
    (global.set $shapeValues (local.get $values))))
