//! Firefox as the sender. Its camera plays no file, so the page draws the camera's pictures.

use weir_scenario::call::{BrowserKind, Content, Degradation};

use super::{Call, CallConfig, Player};

impl CallConfig {
    /// Changes the plan: Firefox sends each video, with its own congestion control.
    ///
    /// # Errors
    /// One line, if another program sends a video, or Firefox cannot send it.
    pub fn with_firefox(mut self) -> Result<Self, &'static str> {
        if self.picture.degradation != Degradation::default() || self.picture.layers > 1 {
            return Err("Firefox chooses itself what to give up, and sends one layer here: leave \
                        out degradation and simulcast");
        }
        for call in &self.calls {
            for (end, video) in call.ends.into_iter().zip(call.video) {
                let player = &mut self.participants[end].player;
                match (video, *player) {
                    (None, _) => {}
                    (Some(_), Player::Browser(_)) => {
                        *player = Player::Browser(BrowserKind::Firefox);
                    }
                    (Some(_), _) => {
                        return Err("this scenario has a sender that is no browser: leave out \
                                    --controller firefox");
                    }
                }
            }
        }
        Ok(self)
    }

    /// Which ends of a call draw their camera's picture, because their browser plays no file. The
    /// picture of a camera without `content` is the browser's own.
    pub(crate) fn draws(&self, call: &Call) -> [bool; 2] {
        let asks = self.picture.content != Content::default();
        let mut draws = [false; 2];
        for (index, (end, video)) in call.ends.into_iter().zip(call.video).enumerate() {
            let is_firefox = self.participants[end].player == Player::Browser(BrowserKind::Firefox);
            draws[index] = asks && video.is_some() && is_firefox;
        }
        draws
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::parse;

    use super::*;

    fn plan(text: &str) -> CallConfig {
        let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
                    [network.up]\ncapacity = \"2Mbps\"\n";
        CallConfig::of(&parse("x", &format!("{head}{text}"), None).unwrap(), 1).unwrap()
    }

    #[test]
    fn firefox_takes_the_senders_place_and_draws_what_the_scenario_asks_for() {
        for (content, draws) in [("", false), ("content = \"film\"", true)] {
            let text = format!("[call.video]\n{content}\n[[flow]]\n");
            let config = plan(&text).with_firefox().unwrap();
            let players: Vec<Player> = config.participants.iter().map(|one| one.player).collect();
            let kinds = [BrowserKind::Firefox, BrowserKind::Chromium];
            assert_eq!(players, kinds.map(Player::Browser));
            assert_eq!(config.draws(&config.calls[0]), [draws, false]);
            assert_eq!(plan(&text).draws(&config.calls[0]), [false, false]);
        }
    }

    #[test]
    fn firefox_does_not_send_what_it_cannot() {
        for text in [
            "[call]\nvideo = { degradation = \"balanced\" }\n[[flow]]\n",
            "[call]\nvideo = { simulcast = 3 }\n[[flow]]\n",
        ] {
            assert!(plan(text).with_firefox().unwrap_err().contains("leave out degradation"));
        }
    }
}
