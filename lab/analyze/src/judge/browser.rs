//! The name of the browser that wrote a dump.

/// Names in a `User-Agent`, and what people call them. Browsers that are built on another one name
/// it, too, so the order decides.
const AGENTS: [(&str, &str); 7] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Version/", "Safari"),
];

/// `Chrome 117` of a `User-Agent` or of a brand with its version.
pub(crate) fn name(program: &str) -> Option<String> {
    for (written, called) in AGENTS {
        let Some((_, rest)) = program.split_once(written) else { continue };
        if called == "Safari" && !program.contains("Safari") {
            continue;
        }
        let version: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return Some(format!("{called} {version}").trim().into());
    }
    let is_brand = !program.is_empty() && !program.contains('/') && program.len() < 40;
    is_brand.then(|| program.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_becomes_the_name_that_people_use() {
        let chrome = "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML) Chrome/117.0.0.0 Safari/537.36";
        assert_eq!(name(chrome).as_deref(), Some("Chrome 117"));
        assert_eq!(name(&format!("{chrome} Edg/117.0")).as_deref(), Some("Edge 117"));
        let safari = "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 Version/17.0 Safari/605.1.15";
        assert_eq!(name(safari).as_deref(), Some("Safari 17"));
        assert_eq!(name("Mozilla/5.0 Gecko/2010 Firefox/118.0").as_deref(), Some("Firefox 118"));
        assert_eq!(name("Chromium 156").as_deref(), Some("Chromium 156"));
        assert_eq!(name("Mozilla/5.0"), None);
    }
}
