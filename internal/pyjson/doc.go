// Package pyjson writes JSON the way CPython's json module does.
//
// The engine writes its rank artifacts with json.dump(document, indent=2), and a merged
// artifact must be, byte for byte, what that call would have written. Four things decide
// those bytes, and each has its place here:
//
//   - scalars: [AppendFloat] prints a float as Python's repr, [AppendString] escapes a
//     string to ASCII;
//   - layout: [Append] and [AppendCompact] print an ordered document, [Reindenter] moves
//     JSON text that exists already to another indentation without touching a literal;
//   - identity: [AppendSorted] and [AppendCanonical] print the canonical form that
//     digests are taken of;
//   - arithmetic: [Summer] adds floats as the built-in sum of CPython 3.12 does.
//
// A number that came from an input is never parsed and printed again: it is carried as
// [Raw] text.
package pyjson
