//! `math`: expressions, units and statistics against snapshots and integer arithmetic.

use crate::fixture::Fixture;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

fn check(calls: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&Fixture::new().transcript(calls));
}

#[test]
fn evaluates() {
    let expressions = [
        "1 + 2 * 3",
        "-2 ** 2",
        "2 ** -1",
        "2 ^ 3 ^ 2",
        "7 // 2",
        "-7 // 2",
        "-7 % 3",
        "0.1 + 0.2",
        "1 / 3",
        "1/3*3",
        "12.5% of 80",
        "200 + 10%",
        "sqrt(2)",
        "sqrt(1/4)",
        "math.sqrt(16)",
        "round(2.5)",
        "round(2.675, 2)",
        "factorial(25)",
        "comb(49, 6)",
        "gcd(12, 18) + lcm(4, 6)",
        "max(1, 5, 3) - min(2, 4)",
        "sum(1, 2, 3)",
        "2 × 3 ÷ 4 − 1",
        "1_000 * 3",
        "sin(0)",
        "log(8, 2)",
        "2 ** 0.5",
        "2 ** 100",
        "",
        "1 +",
        "(1",
        "1 / 0",
        "x + 1",
        "9 ** 9 ** 9",
        "0 ** -1",
        "sqrt(-1)",
        "factorial(1000)",
        "1 $ 2",
        "sqrt(1, 2)",
        "1e999",
        "1 2",
    ];
    let fixture = Fixture::new();
    let said = expressions.iter().map(|expression| {
        let said = fixture.said("math.eval", &json!({"expression": expression}).to_string());
        format!("{expression:24} {}\n", said.replace('\n', "; "))
    });
    expect![[r#"
        1 + 2 * 3                1 + 2 * 3 = 7
        -2 ** 2                  -2 ** 2 = -4
        2 ** -1                  2 ** -1 = 0.5
        2 ^ 3 ^ 2                2 ^ 3 ^ 2 = 512
        7 // 2                   7 // 2 = 3
        -7 // 2                  -7 // 2 = -4
        -7 % 3                   -7 % 3 = 2
        0.1 + 0.2                0.1 + 0.2 = 0.3
        1 / 3                    1 / 3 = 0.3333333333
        1/3*3                    1/3*3 = 1
        12.5% of 80              12.5% of 80 = 10
        200 + 10%                error: adding a bare percent is ambiguous; hint: write 200 + 10% of 200
        sqrt(2)                  sqrt(2) = 1.414213562
        sqrt(1/4)                sqrt(1/4) = 0.5
        math.sqrt(16)            math.sqrt(16) = 4
        round(2.5)               round(2.5) = 2
        round(2.675, 2)          round(2.675, 2) = 2.68
        factorial(25)            factorial(25) = 15511210043330985984000000
        comb(49, 6)              comb(49, 6) = 13983816
        gcd(12, 18) + lcm(4, 6)  gcd(12, 18) + lcm(4, 6) = 18
        max(1, 5, 3) - min(2, 4) max(1, 5, 3) - min(2, 4) = 3
        sum(1, 2, 3)             sum(1, 2, 3) = 6
        2 × 3 ÷ 4 − 1            2 × 3 ÷ 4 − 1 = 0.5
        1_000 * 3                1_000 * 3 = 3000
        sin(0)                   sin(0) = 0
        log(8, 2)                log(8, 2) = 3
        2 ** 0.5                 2 ** 0.5 = 1.414213562
        2 ** 100                 2 ** 100 = 1267650600228229401496703205376
                                 error: the expression is empty; hint: write it as 12 * (3 + 4)
        1 +                      error: the expression ends too early
        (1                       error: a parenthesis is not closed
        1 / 0                    error: division by zero
        x + 1                    error: unknown word in the expression: x; hint: functions: abs, ceil, comb, cos, exp, factorial, floor, gcd, lcm, log, log10, log2, max, min, pow, round, sin, sqrt, sum, tan
        9 ** 9 ** 9              error: limit reached, size of a power in bits: limit 4096, used 1549681956
        0 ** -1                  error: division by zero
        sqrt(-1)                 error: a negative number has no square root
        factorial(1000)          error: limit reached, argument of factorial: limit 450, used 1000
        1 $ 2                    error: unknown sign in the expression: $; hint: write it with + - * / ** % ( ) and functions
        sqrt(1, 2)               error: no such function of 2 arguments: sqrt; hint: functions: abs, ceil, comb, cos, exp, factorial, floor, gcd, lcm, log, log10, log2, max, min, pow, round, sin, sqrt, sum, tan
        1e999                    error: is no number: 1e999
        1 2                      error: not expected here in the expression: 2
    "#]].assert_eq(&said.collect::<String>());
}

#[test]
fn percents_converts_and_averages() {
    check(
        &[
            ("math.percent", r#"{"percent": 7.5, "of": 64}"#),
            ("math.percent", r#"{"percent": "33", "of": "10"}"#),
            ("math.percent", r#"{"percent": "many", "of": 10}"#),
            ("math.percent_of", r#"{"part": 1, "whole": 3}"#),
            ("math.percent_of", r#"{"part": 1, "whole": 0}"#),
            ("math.percent_change", r#"{"old": 80, "new": 60}"#),
            ("math.sqrt", r#"{"x": 2}"#),
            ("math.sqrt", r#"{"x": 2.25}"#),
            ("math.sqrt", r#"{"x": -1}"#),
            ("math.convert", r#"{"value": 5, "from_unit": "miles", "to_unit": "km"}"#),
            ("math.convert", r#"{"value": 20, "from_unit": "celsius", "to_unit": "Fahrenheit"}"#),
            ("math.convert", r#"{"value": -40, "from_unit": "degrees fahrenheit", "to_unit": "°C"}"#),
            ("math.convert", r#"{"value": 1, "from_unit": "GiB", "to_unit": "MB"}"#),
            ("math.convert", r#"{"value": 90, "from_unit": "km/h", "to_unit": "m/s"}"#),
            ("math.convert", r#"{"value": 70, "from_unit": "kg", "to_unit": "pounds"}"#),
            ("math.convert", r#"{"value": 1, "from_unit": "kg", "to_unit": "km"}"#),
            ("math.convert", r#"{"value": 1, "from_unit": "furlong", "to_unit": "km"}"#),
            ("math.statistics", r#"{"numbers": [2, 4, 5, 9]}"#),
            ("math.statistics", r#"{"numbers": [0.1, 0.2]}"#),
            ("math.statistics", r#"{"numbers": [7]}"#),
            ("math.statistics", r#"{"numbers": []}"#),
            ("math.statistics", r#"{"numbers": [1, "two"]}"#),
            ("math.statistics", r#"{"numbers": [1e300, -1e300, 3]}"#),
        ],
        expect![[r#"
            math.percent {"percent": 7.5, "of": 64}
              7.5% of 64 is 4.8
            math.percent {"percent": "33", "of": "10"}
              33% of 10 is 3.3
            math.percent {"percent": "many", "of": 10}
              error: math.percent(percent) must be a number, not: "many"
            math.percent_of {"part": 1, "whole": 3}
              1 is 33.33333333% of 3
            math.percent_of {"part": 1, "whole": 0}
              error: the whole must not be: 0
            math.percent_change {"old": 80, "new": 60}
              from 80 to 60 is a change of -25%
            math.sqrt {"x": 2}
              1.414213562
            math.sqrt {"x": 2.25}
              1.5
            math.sqrt {"x": -1}
              error: a negative number has no square root
            math.convert {"value": 5, "from_unit": "miles", "to_unit": "km"}
              5 miles is 8.04672 km
            math.convert {"value": 20, "from_unit": "celsius", "to_unit": "Fahrenheit"}
              20 celsius is 68 Fahrenheit
            math.convert {"value": -40, "from_unit": "degrees fahrenheit", "to_unit": "°C"}
              -40 degrees fahrenheit is -40 °C
            math.convert {"value": 1, "from_unit": "GiB", "to_unit": "MB"}
              1 GiB is 1073.741824 MB
            math.convert {"value": 90, "from_unit": "km/h", "to_unit": "m/s"}
              90 km/h is 25 m/s
            math.convert {"value": 70, "from_unit": "kg", "to_unit": "pounds"}
              70 kg is 154.3235835 pounds
            math.convert {"value": 1, "from_unit": "kg", "to_unit": "km"}
              error: kg is a unit of mass, not of length: km
              hint: units of mass: mg, g, kg, t, ounce, lb, stone
            math.convert {"value": 1, "from_unit": "furlong", "to_unit": "km"}
              error: no such unit: furlong
              hint: such as km, mile, kg, lb, celsius, litre, km/h, MB, hour
            math.statistics {"numbers": [2, 4, 5, 9]}
              4 numbers: mean 5, median 4.5, standard deviation 2.943920289, min 2, max 9, sum 20
            math.statistics {"numbers": [0.1, 0.2]}
              2 numbers: mean 0.15, median 0.15, standard deviation 0.07071067812, min 0.1, max 0.2, sum 0.3
            math.statistics {"numbers": [7]}
              1 number: mean 7, median 7, standard deviation 0, min 7, max 7, sum 7
            math.statistics {"numbers": []}
              error: the list of numbers is empty
            math.statistics {"numbers": [1, "two"]}
              error: math.statistics(numbers) must be a number, not: "two"
            math.statistics {"numbers": [1e300, -1e300, 3]}
              error: the result is no finite number
        "#]],
    );
}

#[test]
fn results_go_on_as_numbers() {
    let fixture = Fixture::new();
    let value = |expression: &str| {
        let result = fixture.call("math.eval", &json!({"expression": expression}).to_string()).unwrap();
        (result["result"].clone(), result["exact"].clone())
    };
    assert_eq!(value("6 / 2"), (3.into(), "3".into()));
    assert_eq!(value("1 / 3"), (0.333_333_333_3.into(), "1/3".into()));
    assert_eq!(value("2 ** 70"), ("1180591620717411303424".into(), "1180591620717411303424".into()));
    assert_eq!(value("pi").1, serde_json::Value::Null);
}

/// Integer arithmetic agrees with 128-bit arithmetic.
#[test]
fn agrees_with_integers() {
    let fixture = Fixture::new();
    proptest!(|(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000, c in 1_i64..1000)| {
        let expression = format!("({a}) * ({b}) - ({a}) // {c} + ({b}) % {c}");
        let said = fixture.call("math.eval", &json!({"expression": expression}).to_string()).unwrap();
        let (a, b, c) = (i128::from(a), i128::from(b), i128::from(c));
        let expected = a * b - a.div_euclid(c) + b.rem_euclid(c);
        prop_assert_eq!(said["exact"].as_str().unwrap(), expected.to_string());
    });
}

/// There and back is the same number.
#[test]
fn conversion_round_trips() {
    let fixture = Fixture::new();
    let convert = |value: &Value, from: &str, to: &str| {
        let arguments = json!({"value": value, "from_unit": from, "to_unit": to});
        fixture.call("math.convert", &arguments.to_string()).unwrap()["result"].clone()
    };
    proptest!(|(value in -1_000_000_i64..1_000_000)| {
        for (a, b) in [("celsius", "fahrenheit"), ("m", "km"), ("kg", "g"), ("hour", "second"), ("GiB", "byte")] {
            let back = convert(&convert(&value.into(), a, b), b, a);
            prop_assert!((back.as_f64().unwrap() - value as f64).abs() <= 1e-9 * (value as f64).abs() + 1e-6, "{} {}", value, back);
        }
    });
}

#[test]
fn never_panics() {
    let fixture = Fixture::new();
    proptest!(|(expression in r"[0-9a-z+\-*/%^(). ,]{0,60}")| {
        if let Err(e) = fixture.call("math.eval", &json!({"expression": expression}).to_string()) {
            prop_assert!(!e.message().is_empty());
        }
    });
}
