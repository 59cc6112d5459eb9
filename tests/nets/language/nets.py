"""Nets for tests of the language, as texts."""

FIBONACCI = """
<metadata><default><interface value="C4SNet" /></default></metadata>

net fib ({<n>} -> {<result>})
{
  net start connect [{<n>} -> {<n>, <path=1>}];

  net down
  {
    net small connect [{<n>} -> if <n < 2> then {<n>, <leaf>} else {<n>, <inner>}];
    net leaf connect [{<n>, <leaf>} -> {<value=n>}];
    net inner connect [{<n>, <inner>, <path>} -> {<n=n-1, path=2*path>} ; {<n=n-2, path=2*path+1>}];
  }
  connect (small .. (leaf | inner)) * {<value>};

  net up
  {
    net sides connect [{<path>, <value>} -> if <path == 1> then {<result=value>}
                                            else if <path % 2> then {<path=path/2>, <right=value>}
                                            else {<path=path/2>, <left=value>}];
    net pairs connect ([| {<left>}, {<right>} |] * {<left>, <right>}) ! <path>;
    net sum connect [{<left>, <right>} -> {<value=left+right>}];
  }
  connect (sides .. ((pairs .. sum) | [{<result>} -> {<result>}])) \\ {<path>};
}
connect start .. down .. up;
"""

SIEVE = """
//! snet FLAT
type Number = {<n>};
type Filtered = {<n>, <prime>} | {<prime>};
typesig Stage = Number -> Filtered, {<end>} -> {<end>};

net sieve ({<limit>} -> {<prime>} | {<end>})
{
  /* 2 and all that
     follow, up to the limit */
  net count ({<limit>} -> Number | {<end>})
  connect [{<limit>} -> {<n=2>, <limit>}]
          .. [{<n>, <limit>} -> if <n > limit> then {<end>} else {<n>} ; {<n=n+1>, <limit>, <more>}]
          ** {<n>}, {<end>};

  net stage (Stage)
  {
    box keep ((<n>, <prime>) -> (<prime>, <kept>) | (<prime>));
  }
  connect keep || [{<n>} -> {<prime=n>}] || [];
}
connect count .. stage * {<prime>} if <prime > 0 && !(prime % 2 == 0)>, {<end>};
"""

MANDELBROT = """
net mandelbrot ({<width>, <height>, <nodes>} -> {image})
{
  box divide ((<width>, <height>, <nodes>) -> (part, <node>) | (part) | (picture));
  net balanced ({part, <node>} | {part} -> {rows, <node>})
  {
    net tokens connect [| {part}, {<node>} |] * {part, <node>};
    box compute ((part, <node>) -> (rows) | (<node>));
  }
  connect (tokens .. compute !!@ <node>) \\ {<node>} if <node >= 0>, {part};
  box add ((picture, rows) -> (picture) | (image));
}
connect divide .. (balanced | []) .. ([| {picture}, {rows} |] .. (add | [])) * {image};
"""

FACTORIAL = """
net factorial
{
  box at_most_one ((x) -> (x, <last>) | (x, <more>));
  net step
  {
    box less ((x) -> (y));
    box times ((x, r) -> (product));
  }
  connect [{x, r, <more>} -> {x, r}; {x}] .. (less | times@2)
          .. [| {y}, {product} |]@2*{y, product} .. [{y, product} -> {x=y, r=product}];
}
connect (at_most_one .. ([{<last>} -> {<done>}] | step@1)) * {<done>};
"""
